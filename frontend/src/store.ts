// The state of the page, in one place: what is shown, and what is asked for. Views listen to the parts they draw.

/** Holds a state. It changes through `set` only, which tells those that listen to what was set. */
export class Store<S extends object> {
  private current: Readonly<S>;
  private readonly listeners = new Map<keyof S, ((state: Readonly<S>) => void)[]>();

  constructor(initial: S) {
    this.current = initial;
  }

  /** The state as it is now. Later changes make a new one. */
  get state(): Readonly<S> {
    return this.current;
  }

  /** Changes some fields, then calls each listener of these fields, in the order in which they were added. */
  set(changes: Partial<S>): void {
    this.current = { ...this.current, ...changes };
    for (const [field, listeners] of this.listeners)
      if (field in changes) for (const listener of listeners) listener(this.current);
  }

  /** Calls a listener whenever a field is set, also to what it was. */
  on(field: keyof S, listener: (state: Readonly<S>) => void): void {
    this.listeners.set(field, [...(this.listeners.get(field) ?? []), listener]);
  }
}

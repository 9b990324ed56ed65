// The state of the page, or of one of its views, in one object. Views listen to the fields that they draw.

type Listener<S> = (state: Readonly<S>) => void;

/** Holds a state. It changes through `set` only, which calls the listeners of the fields that were set. */
export class Store<S extends object> {
  private current: Readonly<S>;
  private readonly listeners: { fields: (keyof S)[]; listener: Listener<S> }[] = [];

  constructor(initial: S) {
    this.current = initial;
  }

  /** The current state. Changes make a new object. */
  get state(): Readonly<S> {
    return this.current;
  }

  /** Changes some fields, then calls each of their listeners once, in the order in which they were added. */
  set(changes: Partial<S>): void {
    this.current = { ...this.current, ...changes };
    for (const { fields, listener } of this.listeners)
      if (fields.some((field) => field in changes)) listener(this.current);
  }

  /** Calls a listener whenever one of the fields is set, also to the same value. */
  on(fields: keyof S | (keyof S)[], listener: Listener<S>): void {
    this.listeners.push({ fields: Array.isArray(fields) ? fields : [fields], listener });
  }
}

"""Kernels as the `nki` package spells them: slices, destinations first, no masks."""

import math

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def tensor_add(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    rows = slice(nl.program_id(0) * 128, min(a.shape[0], nl.program_id(0) * 128 + 128))
    columns = slice(nl.program_id(1) * 512, min(a.shape[1], nl.program_id(1) * 512 + 512))
    shape = (rows.stop - rows.start, columns.stop - columns.start)
    x = nl.ndarray(shape, dtype=a.dtype, buffer=nl.sbuf)
    y = nl.ndarray(shape, dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a[rows, columns])
    nisa.dma_copy(dst=y, src=b[rows, columns])
    total = nl.ndarray(shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=total, data1=x, data2=y, op=nl.add)
    nisa.dma_copy(dst=out[rows, columns], src=total)
    return out


@nki.jit
def transpose_2d(x, height, width):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    turned = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    rows = tile.reshape((x.shape[0], height, width))
    nisa.tensor_copy(dst=turned.reshape((x.shape[0], width, height)), src=rows.permute((0, 2, 1)))
    nisa.dma_copy(dst=out, src=turned)
    return out


@nki.jit
def average_pool(x, size):
    channels, height, width = x.shape
    out = nl.ndarray((channels, height // size, width // size), dtype=x.dtype, buffer=nl.shared_hbm)
    image = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=image, src=x)
    windows = image.ap(
        [
            [height * width, channels],
            [size * width, height // size],
            [size, width // size],
            [width, size],
            [1, size],
        ]
    )
    total = nl.sum(windows, axis=[3, 4])
    average = nl.ndarray(total.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=average, data=total, op0=nl.multiply, operand0=1.0 / (size * size))
    nisa.dma_copy(dst=out, src=average)
    return out


@nki.jit
def matmul_basic(lhsT, rhs):
    out = nl.ndarray((lhsT.shape[1], rhs.shape[1]), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    left = nl.ndarray(lhsT.shape, dtype=lhsT.dtype, buffer=nl.sbuf)
    right = nl.ndarray(rhs.shape, dtype=rhs.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=lhsT)
    nisa.dma_copy(dst=right, src=rhs)
    product = nl.ndarray(out.shape, dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(product, left, right)
    result = nl.ndarray(out.shape, dtype=out.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out


def load_tile(tensor, row, column, rows, columns):
    """A tile of a tensor in SBUF."""
    tile = nl.ndarray((rows, columns), dtype=tensor.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=tensor[row : row + rows, column : column + columns])
    return tile


def store_tile(out, product, row, column):
    """Put a product into HBM."""
    result = nl.ndarray(product.shape, dtype=out.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    rows, columns = product.shape
    nisa.dma_copy(dst=out[row : row + rows, column : column + columns], src=result)


@nki.jit
def matmul_tiled(lhsT, rhs):
    (k, m), n = lhsT.shape, rhs.shape[1]
    out = nl.ndarray((m, n), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(m // 128):
        for j in nl.affine_range(n // 512):
            total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for step in nl.affine_range(k // 128):
                left = load_tile(lhsT, step * 128, i * 128, 128, 128)
                right = load_tile(rhs, step * 128, j * 512, 128, 512)
                nisa.nc_matmul(dst=total, stationary=left, moving=right)
            store_tile(out, total, i * 128, j * 512)
    return out


@nki.jit
def matmul_hoisted(lhsT, rhs):
    (k, m), n = lhsT.shape, rhs.shape[1]
    out = nl.ndarray((m, n), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(m // 128):
        left = [load_tile(lhsT, step * 128, i * 128, 128, 128) for step in range(k // 128)]
        for j in nl.affine_range(n // 512):
            right = []
            for step in nl.affine_range(k // 128):
                right.append(load_tile(rhs, step * 128, j * 512, 128, 512))
            total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for step in nl.affine_range(k // 128):
                nisa.nc_matmul(dst=total, stationary=left[step], moving=right[step])
            store_tile(out, total, i * 128, j * 512)
    return out


@nki.jit
def matmul_blocked(lhsT, rhs, blocks=2):
    (k, m), n = lhsT.shape, rhs.shape[1]
    steps = k // 128
    out = nl.ndarray((m, n), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(m // (128 * blocks)):
        left = [load_tile(lhsT, step * 128, i * blocks * 128, 128, 128 * blocks) for step in range(steps)]
        for j in nl.affine_range(n // 512):
            right = [load_tile(rhs, step * 128, j * 512, 128, 512) for step in range(steps)]
            for block in nl.affine_range(blocks):
                total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
                for step in nl.affine_range(steps):
                    part = left[step][:, nl.ds(block * 128, 128)]
                    nisa.nc_matmul(dst=total, stationary=part, moving=right[step])
                store_tile(out, total, (i * blocks + block) * 128, j * 512)
    return out


@nki.jit
def softmax(x):
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(math.ceil(rows / 128)):
        count = min(128, rows - i * 128)
        tile = load_tile(x, i * 128, 0, count, columns)
        largest = nl.ndarray((count, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=largest, op=nl.maximum, data=tile, axis=1, negate=True)
        raised = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((count, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(
            dst=raised,
            op=nl.exp,
            data=tile,
            bias=largest,
            reduce_op=nl.add,
            reduce_res=total,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        nisa.reciprocal(dst=total, data=total)
        result = nl.ndarray(tile.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=result, data=raised, op0=nl.multiply, operand0=total)
        nisa.dma_copy(dst=out[i * 128 : i * 128 + count, :], src=result)
    return out


@nki.jit
def rms_norm(x, weight, epsilon=1e-6):
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    weights = nl.load(weight.reshape((1, columns)).broadcast_to((128, columns)))
    for i in nl.affine_range(math.ceil(rows / 128)):
        count = min(128, rows - i * 128)
        tile = load_tile(x, i * 128, 0, count, columns)
        squares = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((count, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation_reduce(dst=squares, op=nl.square, data=tile, reduce_op=nl.add, reduce_res=total)
        scale = nl.ndarray((count, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(scale, total, nl.multiply, 1.0 / columns, op1=nl.add, operand1=epsilon)
        nisa.activation(dst=scale, op=nl.rsqrt, data=scale)
        result = nl.ndarray(tile.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.scalar_tensor_tensor(
            dst=result,
            data=tile,
            op0=nl.multiply,
            operand0=scale,
            op1=nl.multiply,
            operand1=weights[:count, :],
        )
        nisa.dma_copy(dst=out[i * 128 : i * 128 + count, :], src=result)
    return out


@nki.jit
def layer_norm(x, gamma, beta, epsilon=1e-5):
    rows, columns = x.shape
    most = nl.tile_size.bn_stats_fmax
    parts = math.ceil(columns / most)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    scale = nl.load(gamma.reshape((1, columns)).broadcast_to((128, columns)))
    shift = nl.load(beta.reshape((1, columns)).broadcast_to((128, columns)))
    for i in nl.affine_range(math.ceil(rows / 128)):
        count = min(128, rows - i * 128)
        tile = load_tile(x, i * 128, 0, count, columns)
        stats = nl.ndarray((count, 6 * parts), dtype=nl.float32, buffer=nl.sbuf)
        for part in nl.affine_range(parts):
            columns_here = tile[:, part * most : min(columns, (part + 1) * most)]
            nisa.bn_stats(dst=stats[:, nl.ds(part * 6, 6)], data=columns_here)
        moments = nl.ndarray((count, 2), dtype=nl.float32, buffer=nl.sbuf)
        nisa.bn_aggr(dst=moments, data=stats)
        steady = nl.rsqrt(nl.add(moments[:, 1:2], epsilon))
        normal = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(normal, tile, nl.subtract, moments[:, 0], op1=nl.multiply, operand1=steady)
        nisa.tensor_tensor(dst=normal, data1=normal, data2=scale[:count, :], op=nl.multiply)
        nisa.tensor_tensor(dst=normal, data1=normal, data2=shift[:count, :], op=nl.add)
        nisa.dma_copy(dst=out[i * 128 : i * 128 + count, :], src=normal)
    return out


@nki.jit
def rotary(x, cos, sin):
    rows, columns = x.shape
    half = columns // 2
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(rows // 128):
        tile, c, s = (load_tile(t, i * 128, 0, 128, t.shape[1]) for t in (x, cos, sin))
        first, second = tile[:, :half], tile[:, half:]
        turned = nl.ndarray(tile.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(turned[:, :half], nl.multiply(first, c), nl.multiply(second, s), nl.subtract)
        nisa.tensor_tensor(turned[:, half:], nl.multiply(second, c), nl.multiply(first, s), nl.add)
        nisa.dma_copy(dst=out[i * 128 : (i + 1) * 128, :], src=turned)
    return out


@nki.jit
def attention(q, k, v):
    d, seq = q.shape
    out = nl.ndarray((seq, d), dtype=q.dtype, buffer=nl.shared_hbm)
    keys = load_tile(k, 0, 0, d, seq)
    values = [load_tile(v, j * 128, 0, 128, d) for j in range(seq // 128)]
    for i in nl.affine_range(seq // 128):
        queries = load_tile(q, 0, i * 128, d, 128)
        scores = nl.ndarray((128, seq), dtype=nl.float32, buffer=nl.sbuf)
        for j in nl.affine_range(seq // 128):
            product = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_matmul(product, queries, keys[:, nl.ds(j * 128, 128)])
            part = scores[:, nl.ds(j * 128, 128)]
            nisa.tensor_scalar(part, product, nl.multiply, 1.0 / math.sqrt(d))
        largest = nl.max(scores, axis=1, keepdims=True)
        raised = nl.ndarray((128, seq), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(raised, nl.exp, nl.subtract(scores, largest))
        total = nl.sum(raised, axis=1, keepdims=True)
        result = nl.ndarray((128, d), dtype=nl.float32, buffer=nl.psum)
        for j in nl.affine_range(seq // 128):
            turned = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_transpose(dst=turned, data=raised[:, nl.ds(j * 128, 128)])
            weights = nl.ndarray((128, 128), dtype=v.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=weights, src=turned)
            nisa.nc_matmul(dst=result, stationary=weights, moving=values[j])
        scaled = nl.ndarray((128, d), dtype=q.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=scaled, data=result, op0=nl.divide, operand0=total)
        nisa.dma_copy(dst=out[i * 128 : (i + 1) * 128, :], src=scaled)
    return out


@nki.jit
def mlp(x, up, down):
    rows, width = x.shape
    hidden = up.shape[1]
    out = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.shared_hbm)
    turned = nl.ndarray((width, rows), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_transpose(dst=turned, src=x)
    inner = []
    for h in nl.affine_range(hidden // 128):
        product = nl.ndarray((128, rows), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(product, load_tile(up, 0, h * 128, width, 128), turned)
        active = nl.ndarray((128, rows), dtype=x.dtype, buffer=nl.sbuf)
        nisa.activation(dst=active, op=nl.gelu, data=product)
        inner.append(active)
    total = nl.ndarray((rows, width), dtype=nl.float32, buffer=nl.psum)
    for h in nl.affine_range(hidden // 128):
        nisa.nc_matmul(total, inner[h], load_tile(down, h * 128, 0, 128, width))
    store_tile(out, total, 0, 0)
    return out

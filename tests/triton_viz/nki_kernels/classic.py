"""Kernels as `neuronxcc.nki` spells them: index expressions, masks, and results returned."""

import math

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def tensor_add(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    rows = nl.program_id(0) * 128 + nl.arange(128)[:, None]
    columns = nl.program_id(1) * 512 + nl.arange(512)[None, :]
    inside = (rows < a.shape[0]) & (columns < a.shape[1])
    x = nl.load(a[rows, columns], mask=inside)
    y = nl.load(b[rows, columns], mask=inside)
    nl.store(out[rows, columns], value=x + y, mask=inside)
    return out


@nki.jit
def transpose_2d(x, height, width):
    """Each partition holds a matrix of height by width, row by row; the result holds its transpose."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    partition, row, column = nl.mgrid[0 : x.shape[0], 0:height, 0:width]
    tile = nl.load(x)
    turned = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    turned[partition, column * height + row] = nl.copy(tile[partition, row * width + column])
    nl.store(out, turned)
    return out


@nki.jit
def average_pool(x, size):
    channels, height, width = x.shape
    out = nl.ndarray((channels, height // size, width // size), dtype=x.dtype, buffer=nl.shared_hbm)
    c = nl.arange(channels)[:, None, None, None, None]
    i = nl.arange(height // size)[None, :, None, None, None]
    j = nl.arange(width // size)[None, None, :, None, None]
    di = nl.arange(size)[None, None, None, :, None]
    dj = nl.arange(size)[None, None, None, None, :]
    image = nl.load(x)
    total = nl.sum(image[c, size * i + di, size * j + dj], axis=[3, 4])
    nl.store(out, value=total * (1.0 / (size * size)))
    return out


@nki.jit
def matmul_basic(lhsT, rhs):
    out = nl.ndarray((lhsT.shape[1], rhs.shape[1]), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    left = nl.load(lhsT)
    right = nl.load(rhs)
    product = nl.matmul(left, right, transpose_x=True)
    nl.store(out, value=nl.copy(product, dtype=out.dtype))
    return out


@nki.jit
def matmul_tiled(lhsT, rhs):
    (k, m), n = lhsT.shape, rhs.shape[1]
    tile_m, tile_k, tile_n = 128, nl.tile_size.pmax, nl.tile_size.gemm_moving_fmax
    out = nl.ndarray((m, n), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    p, f_m, f_n = nl.arange(128)[:, None], nl.arange(tile_m)[None, :], nl.arange(tile_n)[None, :]
    for i in nl.affine_range(m // tile_m):
        for j in nl.affine_range(n // tile_n):
            total = nl.zeros((tile_m, tile_n), nl.float32, buffer=nl.psum)
            for step in nl.affine_range(k // tile_k):
                left = nl.load(lhsT[step * tile_k + p, i * tile_m + f_m])
                right = nl.load(rhs[step * tile_k + p, j * tile_n + f_n])
                total += nl.matmul(left, right, transpose_x=True)
            result = nl.copy(total, dtype=out.dtype)
            nl.store(out[i * tile_m + p, j * tile_n + f_n], value=result)
    return out


@nki.jit
def matmul_hoisted(lhsT, rhs):
    (k, m), n = lhsT.shape, rhs.shape[1]
    steps = k // 128
    out = nl.ndarray((m, n), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    p, f_m, f_n = nl.arange(128)[:, None], nl.arange(128)[None, :], nl.arange(512)[None, :]
    for i in nl.affine_range(m // 128):
        left = nl.ndarray((steps, nl.par_dim(128), 128), dtype=lhsT.dtype, buffer=nl.sbuf)
        for step in nl.affine_range(steps):
            left[step, p, f_m] = nl.load(lhsT[step * 128 + p, i * 128 + f_m])
        for j in nl.affine_range(n // 512):
            right = nl.ndarray((steps, nl.par_dim(128), 512), dtype=rhs.dtype, buffer=nl.sbuf)
            for step in nl.affine_range(steps):
                right[step, p, f_n] = nl.load(rhs[step * 128 + p, j * 512 + f_n])
            total = nl.zeros((128, 512), nl.float32, buffer=nl.psum)
            for step in nl.affine_range(steps):
                total[...] += nisa.nc_matmul(left[step], right[step])
            nl.store(out[i * 128 + p, j * 512 + f_n], value=nl.copy(total, dtype=out.dtype))
    return out


@nki.jit
def matmul_blocked(lhsT, rhs, blocks=2):
    (k, m), n = lhsT.shape, rhs.shape[1]
    steps = k // 128
    out = nl.ndarray((m, n), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    p, f_m, f_n = nl.arange(128)[:, None], nl.arange(128)[None, :], nl.arange(512)[None, :]
    for i in nl.affine_range(m // (128 * blocks)):
        left = nl.ndarray((blocks, steps, nl.par_dim(128), 128), dtype=lhsT.dtype, buffer=nl.sbuf)
        for block in nl.affine_range(blocks):
            for step in nl.affine_range(steps):
                left[block, step] = nl.load(lhsT[step * 128 + p, (i * blocks + block) * 128 + f_m])
        for j in nl.affine_range(n // 512):
            right = nl.ndarray((steps, nl.par_dim(128), 512), dtype=rhs.dtype, buffer=nl.sbuf)
            for step in nl.affine_range(steps):
                right[step] = nl.load(rhs[step * 128 + p, j * 512 + f_n])
            for block in nl.affine_range(blocks):
                total = nl.zeros((128, 512), nl.float32, buffer=nl.psum)
                for step in nl.affine_range(steps):
                    total += nl.matmul(left[block, step], right[step], transpose_x=True)
                result = nl.copy(total, dtype=out.dtype)
                nl.store(out[(i * blocks + block) * 128 + p, j * 512 + f_n], value=result)
    return out


@nki.jit
def softmax(x):
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    p, f = nl.mgrid[0:128, 0:columns]
    for i in nl.affine_range(math.ceil(rows / 128)):
        inside = i * 128 + p < rows
        tile = nl.load(x[i * 128 + p, f], mask=inside)
        largest = nl.max(tile, axis=1, keepdims=True, mask=inside)
        raised = nl.exp(tile - largest, mask=inside)
        total = nl.sum(raised, axis=[1], keepdims=True, mask=inside)
        nl.store(out[i * 128 + p, f], value=raised / total, mask=inside)
    return out


@nki.jit
def rms_norm(x, weight, epsilon=1e-6):
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    p, one, f = nl.arange(128)[:, None], nl.arange(1)[:, None], nl.arange(columns)[None, :]
    weights = nl.load(weight.reshape((1, columns))[one, f])
    for i in nl.affine_range(math.ceil(rows / 128)):
        inside = i * 128 + p < rows
        tile = nl.load(x[i * 128 + p, f], mask=inside)
        mean = nl.sum(nl.square(tile), axis=[1]) / columns
        scale = nl.rsqrt(mean + epsilon)
        normal = nl.multiply(tile, scale.reshape((128, 1)))
        result = nl.multiply(normal, weights.broadcast_to((128, columns)), mask=inside)
        nl.store(out[i * 128 + p, f], value=result, mask=inside)
    return out


@nki.jit
def layer_norm(x, gamma, beta, epsilon=1e-5):
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    p, f = nl.arange(128)[:, None], nl.arange(columns)[None, :]
    most = nl.tile_size.bn_stats_fmax
    parts = math.ceil(columns / most)
    scale = nl.load(gamma.reshape((1, columns)))
    shift = nl.load(beta.reshape((1, columns)))
    for i in nl.affine_range(math.ceil(rows / 128)):
        inside = i * 128 + p < rows
        tile = nl.load(x[i * 128 + p, f], mask=inside)
        stats = nl.ndarray((128, 6 * parts), dtype=nl.float32, buffer=nl.sbuf)
        for part in nl.affine_range(parts):
            at = part * most + nl.arange(most)[None, :]
            here = (i * 128 + p < rows) & (at < columns)
            six = part * 6 + nl.arange(6)[None, :]
            stats[p, six] = nisa.bn_stats(tile[p, at], mask=here, dtype=np.float32)
        moments = nisa.bn_aggr(stats)
        mean, variance = moments[:, 0:1], moments[:, 1:2]
        steady = nl.rsqrt(nl.add(variance, epsilon))
        normal = nisa.tensor_scalar(tile, op0=np.subtract, operand0=mean, op1=np.multiply, operand1=steady)
        result = normal * scale.broadcast_to((128, columns)) + shift.broadcast_to((128, columns))
        nl.store(out[i * 128 + p, f], value=result, mask=inside)
    return out


@nki.jit
def rotary(x, cos, sin):
    """Halves of each row turn into each other."""
    rows, columns = x.shape
    half = columns // 2
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    p, f = nl.arange(128)[:, None], nl.arange(half)[None, :]
    for i in nl.affine_range(rows // 128):
        tile = nl.load(x[nl.ds(i * 128, 128), :])
        c = nl.load(cos[nl.ds(i * 128, 128), :])
        s = nl.load(sin[nl.ds(i * 128, 128), :])
        turned = nl.ndarray((128, columns), dtype=x.dtype, buffer=nl.sbuf)
        turned[p, f] = tile[p, f] * c[p, f] - tile[p, half + f] * s[p, f]
        turned[p, half + f] = tile[p, half + f] * c[p, f] + tile[p, f] * s[p, f]
        nl.store(out[nl.ds(i * 128, 128), :], value=turned)
    return out


@nki.jit
def attention(q, k, v):
    """q and k are (d, seq), v is (seq, d): one block of queries against all keys at a time."""
    d, seq = q.shape
    out = nl.ndarray((seq, d), dtype=q.dtype, buffer=nl.shared_hbm)
    scale = 1.0 / math.sqrt(d)
    keys = nl.load(k)
    values = nl.ndarray((seq // 128, nl.par_dim(128), d), dtype=v.dtype, buffer=nl.sbuf)
    for j in nl.affine_range(seq // 128):
        values[j] = nl.load(v[nl.ds(j * 128, 128), :])
    for i in nl.affine_range(seq // 128):
        queries = nl.load(q[:, nl.ds(i * 128, 128)])
        scores = nl.ndarray((128, seq), dtype=nl.float32, buffer=nl.sbuf)
        for j in nl.affine_range(seq // 128):
            product = nisa.nc_matmul(queries, keys[:, nl.ds(j * 128, 128)])
            scores[:, nl.ds(j * 128, 128)] = nisa.activation(nl.copy, product, scale=scale)
        largest = nisa.tensor_reduce(np.max, scores, axis=(1,), negate=True, keepdims=True)
        total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        raised = nisa.activation_reduce(nl.exp, scores, bias=largest, reduce_op=np.add, reduce_res=total)
        result = nl.zeros((128, d), dtype=nl.float32, buffer=nl.psum)
        for j in nl.affine_range(seq // 128):
            turned = nl.copy(nisa.nc_transpose(raised[:, nl.ds(j * 128, 128)]), dtype=v.dtype)
            result += nisa.nc_matmul(turned, values[j])
        nl.store(
            out[nl.ds(i * 128, 128), :], value=nl.multiply(result, nisa.reciprocal(total), dtype=q.dtype)
        )
    return out


@nki.jit
def mlp(x, up, down):
    """gelu(x @ up) @ down, for 128 rows of x."""
    rows, width = x.shape
    hidden = up.shape[1]
    out = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.shared_hbm)
    turned = nl.load_transpose2d(x)
    inner = nl.ndarray((hidden // 128, nl.par_dim(128), rows), dtype=x.dtype, buffer=nl.sbuf)
    for h in nl.affine_range(hidden // 128):
        weights = nl.load(up[:, nl.ds(h * 128, 128)])
        product = nl.matmul(weights, turned, transpose_x=True)
        inner[h] = nisa.activation(nl.gelu, product)
    total = nl.zeros((rows, width), dtype=nl.float32, buffer=nl.psum)
    for h in nl.affine_range(hidden // 128):
        weights = nl.load(down[nl.ds(h * 128, 128), :])
        total += nl.matmul(inner[h], weights, transpose_x=True)
    nl.store(out, value=nl.copy(total, dtype=x.dtype))
    return out

"""Each kernel with a violation, in a line that is marked `# wrong`."""

import math

import neuronxcc.nki as classic_nki
import neuronxcc.nki.isa as cnisa
import neuronxcc.nki.language as cnl
import nki
import nki.isa as nisa
import nki.language as nl

from tests.triton_viz.nki_kernels.modern import load_tile


@classic_nki.jit
def tensor_add(a, b):
    """Rows beyond the end, and no mask."""
    out = cnl.ndarray(a.shape, dtype=a.dtype, buffer=cnl.shared_hbm)
    rows = cnl.program_id(0) * 128 + cnl.arange(128)[:, None]
    columns = cnl.arange(512)[None, :]
    x = cnl.load(a[rows, columns])  # wrong
    y = cnl.load(b[rows, columns])
    cnl.store(out[rows, columns], value=x + y)
    return out


@nki.jit
def tensor_add_sliced(a, b):
    """The last slice ends outside."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(math.ceil(a.shape[0] / 128)):
        x = nl.ndarray((128, a.shape[1]), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=x, src=a[i * 128 : (i + 1) * 128, :])  # wrong
        nisa.dma_copy(dst=out[i * 128 : (i + 1) * 128, :], src=x)
    return out


@nki.jit
def transpose_2d(x, height, width):
    """Height and width are exchanged in the pattern's offset."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    turned = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    columns = tile.ap([[height * width, x.shape[0]], [1, width], [width, height + 1]])
    nisa.tensor_copy(dst=turned, src=columns[:, :, 1:])  # wrong
    nisa.dma_copy(dst=out, src=turned)
    return out


@classic_nki.jit
def average_pool(x, size):
    """One window too many."""
    channels, height, width = x.shape
    out = cnl.ndarray((channels, height // size, width // size), dtype=x.dtype, buffer=cnl.shared_hbm)
    c = cnl.arange(channels)[:, None, None]
    i = cnl.arange(height // size + 1)[None, :, None]
    j = cnl.arange(width // size)[None, None, :]
    image = cnl.load(x)
    corner = cnl.copy(image[c, size * i, size * j])  # wrong
    cnl.store(out, value=corner[:, 0 : height // size, :])
    return out


@nki.jit
def matmul_basic(lhsT, rhs):
    """256 rows in 128 partitions."""
    out = nl.ndarray((lhsT.shape[1], rhs.shape[1]), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    left = nl.ndarray(lhsT.shape, dtype=lhsT.dtype, buffer=nl.sbuf)  # wrong
    nisa.dma_copy(dst=left, src=lhsT)
    return out


@nki.jit
def matmul_tiled(lhsT, rhs):
    """The moving tile has more columns than the tensor engine takes."""
    out = nl.ndarray((lhsT.shape[1], rhs.shape[1]), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    left = load_tile(lhsT, 0, 0, 128, 128)
    right = load_tile(rhs, 0, 0, 128, 1024)
    total = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=total, stationary=left, moving=right)  # wrong
    return out


@nki.jit
def matmul_hoisted(lhsT, rhs):
    """All of the right side is kept, which is more than SBUF."""
    m, n = lhsT.shape[1], rhs.shape[1]
    out = nl.ndarray((m, n), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    right = []
    for j in nl.affine_range(n // 2048):
        tile = nl.ndarray((128, 2048), dtype=rhs.dtype, buffer=nl.sbuf)  # wrong
        nisa.dma_copy(dst=tile, src=rhs[0:128, nl.ds(j * 2048, 2048)])
        right.append(tile)
    left = load_tile(lhsT, 0, 0, 128, 128)
    for j in nl.affine_range(n // 2048):
        total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=total, stationary=left, moving=right[j][:, 0:512])
    return out


@classic_nki.jit
def matmul_blocked(lhsT, rhs):
    """Sums of nine blocks at once, and PSUM has eight banks."""
    out = cnl.ndarray((lhsT.shape[1], rhs.shape[1]), dtype=lhsT.dtype, buffer=cnl.shared_hbm)
    left, right = cnl.load(lhsT), cnl.load(rhs)
    sums = []
    for _ in cnl.affine_range(9):
        total = cnl.zeros((128, 512), cnl.float32, buffer=cnl.psum)  # wrong
        sums.append(total)
    for total in sums:
        total += cnl.matmul(left, right, transpose_x=True)
        cnl.store(out, value=cnl.copy(total))
    return out


@classic_nki.jit
def softmax(x):
    """The largest is taken over columns that the load left out."""
    rows, columns = x.shape
    out = cnl.ndarray(x.shape, dtype=x.dtype, buffer=cnl.shared_hbm)
    p, f = cnl.mgrid[0:128, 0:128]
    inside = (p < rows) & (f < columns)
    tile = cnl.load(x[p, f], mask=inside)
    largest = cnl.max(tile, axis=1, keepdims=True)  # wrong
    raised = cnl.exp(tile - largest)
    cnl.store(out[p, f], value=raised, mask=inside)
    return out


@classic_nki.jit
def rms_norm(x, weight):
    """The store has no mask."""
    rows, columns = x.shape
    out = cnl.ndarray(x.shape, dtype=x.dtype, buffer=cnl.shared_hbm)
    p, f = cnl.arange(128)[:, None], cnl.arange(columns)[None, :]
    for i in cnl.affine_range(math.ceil(rows / 128)):
        tile = cnl.load(x[i * 128 + p, f], mask=i * 128 + p < rows)
        cnl.store(out[i * 128 + p, f], value=tile * 2.0)  # wrong
    return out


@nki.jit
def layer_norm(x, gamma, beta):
    """bn_stats of a row that is too long for it."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = load_tile(x, 0, 0, 128, x.shape[1])
    stats = nl.ndarray((128, 6), dtype=nl.float32, buffer=nl.sbuf)
    nisa.bn_stats(dst=stats, data=tile)  # wrong
    return out


@nki.jit
def rotary(x, cos, sin):
    """Only the first half is written before all of it is stored."""
    columns = x.shape[1]
    half = columns // 2
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile, c = load_tile(x, 0, 0, 128, columns), load_tile(cos, 0, 0, 128, half)
    turned = nl.ndarray((128, columns), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(turned[:, :half], tile[:, :half], c, nl.multiply)
    nisa.dma_copy(dst=out[0:128, :], src=turned)  # wrong
    return out


@nki.jit
def attention(q, k, v):
    """The scores are used in a product from PSUM, where the tensor engine cannot read."""
    d, seq = q.shape
    out = nl.ndarray((seq, d), dtype=q.dtype, buffer=nl.shared_hbm)
    queries, keys = load_tile(q, 0, 0, d, 128), load_tile(k, 0, 0, d, 128)
    scores = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(scores, queries, keys)
    result = nl.ndarray((128, d), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(result, scores, load_tile(v, 0, 0, 128, d))  # wrong
    return out


@nki.jit
def mlp(x, up, down):
    """The activation is asked of an engine that has none."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = load_tile(x, 0, 0, *x.shape)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.multiply, engine=nisa.engine.scalar)  # wrong
    nisa.dma_copy(dst=out, src=tile)
    return out


@classic_nki.jit
def gather(x, indices):
    """One of the indices is beyond the last row."""
    out = cnl.ndarray((128, x.shape[1]), dtype=x.dtype, buffer=cnl.shared_hbm)
    chosen = cnl.load(indices)
    rows = cnl.load(x[chosen[cnl.arange(128)[:, None], 0], cnl.arange(x.shape[1])[None, :]])  # wrong
    cnl.store(out, value=rows)
    return out


@nki.jit
def copy_on_gpsimd(x):
    """PSUM is read by the one engine that cannot."""
    tile = load_tile(x, 0, 0, 128, 128)
    turned = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.psum)
    nisa.nc_transpose(dst=turned, data=tile)
    nisa.tensor_copy(dst=tile, src=turned, engine=nisa.engine.gpsimd)  # wrong
    return x


@classic_nki.jit
def one_tile_too_large(x):
    """A tile that no memory of the chip holds."""
    tile = cnl.zeros((128, 64 * 1024), dtype=cnl.float32, buffer=cnl.sbuf)  # wrong
    cnisa.tensor_copy(tile)
    return x

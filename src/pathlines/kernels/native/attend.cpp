// Attention that never writes its n x n weights, as a call from JAX.
//
// Softmax takes c_i = ln sum_j m_j exp(<q_i, k_j>), returned as a shift and the sum that is left (whoever does not need
// its logarithm does not pay for it), unnormalised attention a given shift; causal rows see the keys up to their own
// number. A softmax row that sees no mass is the sum of no keys at all: zero, with a partition function of zero. Three
// more arguments are matrices that the rows go through first. Cost O(n m (p + d)) time and O(m (p + d)) memory for each
// system of the batch, on all cores.

#include "matrices.h"

namespace ffi = xla::ffi;

namespace {

constexpr double kWorth = 3e5;  // exponentials (or as much work) that pay for waking a second thread

// Small systems: one after the other on each thread, with memory that is kept from one to the next.
template <typename T>
void alone(const Problem<T>& given, const Matrices<T>& matrices) {
  static thread_local std::vector<T> room;
  const Problem<T> s = matrices.applied(given, room, [](int64_t count, const auto& work) {
    for (int64_t i = 0; i < count; ++i) work(i);
  });
  static thread_local Packed<T> packed;
  static thread_local LogMasses<T> masses;
  static thread_local Scratch<T> scratch;
  const Shifts<T> shifts(s);
  if (std::max(s.p, s.d) <= kLongestShort) {
    masses.pack(s);
    return short_rows<T>(s, masses, shifts, 0, s.n);
  }
  packed.pack(s);
  for (int64_t i = 0; i < s.n; i += kTile) long_rows<T>(s, packed, shifts, scratch, i, std::min(s.n, i + kTile));
}

// A large one: keys packed once, rows shared. Causal pieces grow with the row, so the last go first.
template <typename T>
void together(const Problem<T>& given, const Matrices<T>& matrices, ffi::ThreadPool& pool) {
  static thread_local std::vector<T> room;
  const Problem<T> s =
      matrices.applied(given, room, [&](int64_t count, const auto& work) { share(pool, count, work); });
  static thread_local Packed<T> packed_here;
  static thread_local LogMasses<T> masses_here;
  Packed<T>& packed = packed_here;
  LogMasses<T>& masses = masses_here;
  const Shifts<T> shifts(s);
  const bool is_short = std::max(s.p, s.d) <= kLongestShort;
  if (is_short)
    masses.pack(s);
  else
    packed.pack(s);
  const Cut cut(s.n, is_short ? 256 : kTile, 4 * pool.num_threads(), is_short ? Lanes<T>::width : kRows);
  share(pool, cut.pieces, [&](int64_t piece) {
    static thread_local Scratch<T> scratch;
    const int64_t i = cut.pieces - 1 - piece;
    if (is_short)
      short_rows<T>(s, masses, shifts, cut.first(i), cut.last(i));
    else
      long_rows<T>(s, packed, shifts, scratch, cut.first(i), cut.last(i));
  });
}

using Sizes = ffi::Span<const int64_t>;

// Where system `i` of a batch begins in an array whose first sizes are those of the batch, or one where it is shared.
int64_t begins(Sizes sizes, Sizes batch, size_t depth, int64_t i) {
  int64_t stride = 1, at = 0;
  for (size_t k = depth; k < sizes.size(); ++k) stride *= sizes[k];
  for (size_t k = depth; k-- > 0; i /= batch[k], stride *= sizes[k])
    if (sizes[k] > 1) at += i % batch[k] * stride;
  return at;
}

template <typename T, ffi::DataType D>
ffi::Error attend(ffi::ThreadPool pool, bool softmax, bool causal, ffi::Buffer<D> q, ffi::Buffer<D> k, ffi::Buffer<D> v,
                  ffi::Buffer<D> mass, ffi::Buffer<D> shift, ffi::RemainingArgs rest, ffi::ResultBuffer<D> out,
                  ffi::ResultBuffer<D> top, ffi::ResultBuffer<D> norm) {
  const Sizes a = q.dimensions(), whole = out->dimensions();
  const size_t depth = whole.size() - 2;
  const int64_t n = whole[depth], m = k.dimensions()[depth], d = whole[depth + 1];
  Matrices<T> shared;
  Sizes sizes[3];
  shared.width = a[depth + 1];
  for (size_t i = 0; i < rest.size(); ++i) {
    const auto matrix = rest.get<ffi::Buffer<D>>(i);
    if (matrix.has_error()) return matrix.error();
    sizes[i] = matrix->dimensions();
    shared.data[i] = matrix->typed_data();
    shared.rows[i] = sizes[i][depth];
  }
  const int64_t p = shared.rows[0] > 0 ? shared.rows[0] : shared.rows[1] > 0 ? shared.rows[1] : a[depth + 1];
  int64_t batch = 1;
  for (size_t i = 0; i < depth; ++i) batch *= whole[i];
  auto of = [&](const auto& buffer, int64_t i) {
    return buffer.typed_data() + begins(buffer.dimensions(), whole, depth, i);
  };
  auto problem = [&](int64_t i) {
    return Problem<T>{of(q, i), of(k, i), of(v, i), of(mass, i), of(shift, i),
                      out->typed_data() + i * n * d, top->typed_data() + i * n, norm->typed_data() + i * n,
                      n, m, p, d, softmax, causal};
  };
  auto matrices = [&](int64_t i) {
    Matrices<T> own = shared;
    for (size_t h = 0; h < rest.size(); ++h) own.data[h] += begins(sizes[h], whole, depth, i);
    return own;
  };
  const double work = double(n) * double(m) * (1 + (p + d) / 12.0);
  if (batch * work < kWorth) {
    for (int64_t i = 0; i < batch; ++i) alone<T>(problem(i), matrices(i));
  } else if (batch >= 2 * pool.num_threads() || work < kWorth) {
    const int64_t group = std::max<int64_t>(1, std::min<int64_t>(batch / (4 * pool.num_threads()), kWorth / work));
    share(pool, (batch + group - 1) / group, [&](int64_t g) {
      for (int64_t i = g * group; i < std::min(batch, (g + 1) * group); ++i) alone<T>(problem(i), matrices(i));
    });
  } else {
    for (int64_t i = 0; i < batch; ++i) together<T>(problem(i), matrices(i), pool);
  }
  return ffi::Error::Success();
}

template <ffi::DataType D>
auto binding() {
  return ffi::Ffi::Bind()
      .template Ctx<ffi::ThreadPool>()
      .template Attr<bool>("softmax")
      .template Attr<bool>("causal")
      .template Arg<ffi::Buffer<D>>()
      .template Arg<ffi::Buffer<D>>()
      .template Arg<ffi::Buffer<D>>()
      .template Arg<ffi::Buffer<D>>()
      .template Arg<ffi::Buffer<D>>()
      .RemainingArgs()
      .template Ret<ffi::Buffer<D>>()
      .template Ret<ffi::Buffer<D>>()
      .template Ret<ffi::Buffer<D>>();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(attend_float32, (attend<float, ffi::F32>), (binding<ffi::F32>()));
XLA_FFI_DEFINE_HANDLER_SYMBOL(attend_float64, (attend<double, ffi::F64>), (binding<ffi::F64>()));

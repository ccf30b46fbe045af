// The two loops that resizing spends its time in, by what the processor has: the same bits from each.
#include <algorithm>

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "resample.hpp"

namespace dtrain::data {
namespace {

constexpr int kHalf = 1 << (kWeightBits - 1);

inline std::uint8_t rounded(std::int32_t sum) { return static_cast<std::uint8_t>((sum + kHalf) >> kWeightBits); }

#ifdef __SSE2__

// Two pixels beside each other to r0 r1 g0 g1 b0 b1 x0 x1 as 16-bit numbers.
inline __m128i paired(const std::uint8_t* pixels) {
  const __m128i both = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(pixels));
  return _mm_unpacklo_epi8(_mm_unpacklo_epi8(both, _mm_srli_epi64(both, 32)), _mm_setzero_si128());
}

inline __m128i weight_pair(const std::int16_t* weight) {
  return _mm_set1_epi32(static_cast<std::uint16_t>(weight[0]) |
                        static_cast<int>(static_cast<unsigned>(static_cast<std::uint16_t>(weight[1])) << 16));
}

inline void across_pixel(const std::uint8_t* from, const std::int16_t* weight, int count, std::uint8_t* out) {
  __m128i sum = _mm_set1_epi32(kHalf);
  for (int k = 0; k < count; k += 2) {
    sum = _mm_add_epi32(sum, _mm_madd_epi16(paired(from + k * kPixelBytes), weight_pair(weight + k)));
  }
  const __m128i words = _mm_packs_epi32(_mm_srli_epi32(sum, kWeightBits), _mm_setzero_si128());
  const int pixel = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
  std::copy_n(reinterpret_cast<const std::uint8_t*>(&pixel), kPixelBytes, out);
}

// 16 bytes of each row.
inline void down_bytes(const std::uint8_t* const* rows, const std::int16_t* weight, int count, int at,
                       std::uint8_t* out) {
  const __m128i zero = _mm_setzero_si128();
  __m128i sum[4];
  std::fill_n(sum, 4, _mm_set1_epi32(kHalf));
  for (int k = 0; k < count; k += 2) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[k] + at));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[k + 1] + at));
    const __m128i low = _mm_unpacklo_epi8(a, b), high = _mm_unpackhi_epi8(a, b), pair = weight_pair(weight + k);
    sum[0] = _mm_add_epi32(sum[0], _mm_madd_epi16(_mm_unpacklo_epi8(low, zero), pair));
    sum[1] = _mm_add_epi32(sum[1], _mm_madd_epi16(_mm_unpackhi_epi8(low, zero), pair));
    sum[2] = _mm_add_epi32(sum[2], _mm_madd_epi16(_mm_unpacklo_epi8(high, zero), pair));
    sum[3] = _mm_add_epi32(sum[3], _mm_madd_epi16(_mm_unpackhi_epi8(high, zero), pair));
  }
  for (__m128i& each : sum) each = _mm_srli_epi32(each, kWeightBits);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out + at),
                   _mm_packus_epi16(_mm_packs_epi32(sum[0], sum[1]), _mm_packs_epi32(sum[2], sum[3])));
}

// The same by AVX2, where the processor has it: twice the pixels at once.

// Two pixels from each of two places, the first place's in the lower half.
[[gnu::target("avx2")]] inline __m256i paired_at(const std::uint8_t* a, const std::uint8_t* b) {
  const __m128i order = _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
  const __m128i both = _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(a)),
                                          _mm_loadl_epi64(reinterpret_cast<const __m128i*>(b)));
  return _mm256_cvtepu8_epi16(_mm_shuffle_epi8(both, order));
}

[[gnu::target("avx2")]] inline __m256i weight_pairs_at(const std::int16_t* a, const std::int16_t* b) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(weight_pair(a)), weight_pair(b), 1);
}

// Two outputs; returns how many of the row's were made so.
[[gnu::target("avx2")]] std::size_t across_by_two(const std::uint8_t* row, const Taps& across, std::uint8_t* out) {
  const std::int16_t* weight = across.weight.data();
  std::size_t i = 0;
  for (; i + 2 <= across.first.size(); i += 2, weight += 2 * across.count, out += 2 * kPixelBytes) {
    const std::uint8_t* a = row + std::ptrdiff_t{across.first[i]} * kPixelBytes;
    const std::uint8_t* b = row + std::ptrdiff_t{across.first[i + 1]} * kPixelBytes;
    __m256i sum = _mm256_set1_epi32(kHalf);
    for (int k = 0; k < across.count; k += 2, a += 2 * kPixelBytes, b += 2 * kPixelBytes) {
      const __m256i pair = weight_pairs_at(weight + k, weight + across.count + k);
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(paired_at(a, b), pair));
    }
    sum = _mm256_srli_epi32(sum, kWeightBits);
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_packus_epi16(words, words));
  }
  return i;
}

// 32 bytes of each row; returns how many bytes were made so.
[[gnu::target("avx2")]] int down_by_32(const std::uint8_t* const* rows, const std::int16_t* weight, int count,
                                       int bytes, std::uint8_t* out) {
  const __m256i zero = _mm256_setzero_si256();
  int at = 0;
  for (; at + 32 <= bytes; at += 32) {
    __m256i sum[4];
    for (__m256i& each : sum) each = _mm256_set1_epi32(kHalf);
    for (int k = 0; k < count; k += 2) {
      const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[k] + at));
      const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[k + 1] + at));
      const __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
      const __m256i pair = weight_pairs_at(weight + k, weight + k);
      sum[0] = _mm256_add_epi32(sum[0], _mm256_madd_epi16(_mm256_unpacklo_epi8(low, zero), pair));
      sum[1] = _mm256_add_epi32(sum[1], _mm256_madd_epi16(_mm256_unpackhi_epi8(low, zero), pair));
      sum[2] = _mm256_add_epi32(sum[2], _mm256_madd_epi16(_mm256_unpacklo_epi8(high, zero), pair));
      sum[3] = _mm256_add_epi32(sum[3], _mm256_madd_epi16(_mm256_unpackhi_epi8(high, zero), pair));
    }
    for (__m256i& each : sum) each = _mm256_srli_epi32(each, kWeightBits);
    const __m256i done = _mm256_packus_epi16(_mm256_packs_epi32(sum[0], sum[1]), _mm256_packs_epi32(sum[2], sum[3]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + at), done);
  }
  return at;
}

bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
}

#else

inline void across_pixel(const std::uint8_t* from, const std::int16_t* weight, int count, std::uint8_t* out) {
  for (int c = 0; c < kPixelBytes; ++c) {
    std::int32_t sum = 0;
    for (int k = 0; k < count; ++k) sum += weight[k] * from[k * kPixelBytes + c];
    out[c] = rounded(sum);
  }
}

#endif

}  // namespace

void resample_across(const std::uint8_t* row, const Taps& across, std::uint8_t* out) {
  std::size_t i = 0;
#ifdef __SSE2__
  if (has_avx2()) i = across_by_two(row, across, out);
#endif
  for (; i < across.first.size(); ++i) {
    across_pixel(row + std::ptrdiff_t{across.first[i]} * kPixelBytes,
                 across.weight.data() + i * static_cast<std::size_t>(across.count), across.count,
                 out + i * kPixelBytes);
  }
}

void resample_down(const std::uint8_t* const* rows, const std::int16_t* weight, int count, int bytes,
                   std::uint8_t* out) {
  int at = 0;
#ifdef __SSE2__
  if (has_avx2()) at = down_by_32(rows, weight, count, bytes, out);
  for (; at + 16 <= bytes; at += 16) down_bytes(rows, weight, count, at, out);
#endif
  for (; at < bytes; ++at) {
    std::int32_t sum = 0;
    for (int k = 0; k < count; ++k) sum += weight[k] * rows[k][at];
    out[at] = rounded(sum);
  }
}

}  // namespace dtrain::data

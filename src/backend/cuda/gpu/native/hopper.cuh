// Instructions that only Hopper (sm_90a) has, one function each: barriers in shared memory, TMA, wgmma. PTX ISA 8.0 and
// newer describes them.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "../../kernel.hpp"
#include "async_copy.hpp"
#include "product_layout.hpp"

namespace dtrain::backend::cuda::hopper {

#define DTRAIN_DEVICE __device__ __forceinline__

// ---- barriers: so many arrivals, and all bytes that are expected, end a phase

DTRAIN_DEVICE void start_barrier(std::uint32_t barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(barrier), "r"(arrivals) : "memory");
}
// What start_barrier() wrote is there for TMA, too.
DTRAIN_DEVICE void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
}
DTRAIN_DEVICE void arrive(std::uint32_t barrier) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared::cta.b64 state, [%0];\n}" : : "r"(barrier) : "memory");
}
DTRAIN_DEVICE void arrive_and_expect(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n}"
               :
               : "r"(barrier), "r"(bytes)
               : "memory");
}
DTRAIN_DEVICE bool is_over(std::uint32_t barrier, std::uint32_t phase) {
  std::uint32_t over;
  asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.b32 %0, 1, 0, p;\n}"
               : "=r"(over)
               : "r"(barrier), "r"(phase)
               : "memory");
  return over != 0;
}
DTRAIN_DEVICE std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
// A wait of many seconds is a fault of the kernel or of what it was given: an error ends the work then, and no job
// hangs.
static __device__ __noinline__ void wait_long(std::uint32_t barrier, std::uint32_t phase) {
  constexpr std::uint64_t kLongest = 20'000'000'000;
  const std::uint64_t begin = nanoseconds();
  while (!is_over(barrier, phase)) {
    if (nanoseconds() - begin > kLongest) __trap();
  }
}
DTRAIN_DEVICE void wait(std::uint32_t barrier, std::uint32_t phase) {
  constexpr int kPolls = 1 << 12;
#pragma unroll 1
  for (int poll = 0; poll < kPolls; ++poll) {
    if (is_over(barrier, phase)) return;
  }
  wait_long(barrier, phase);
}
// Waits for all threads of one consumer; barrier 0 is __syncthreads().
DTRAIN_DEVICE void meet(std::int32_t consumer) {
  asm volatile("bar.sync %0, %1;" : : "r"(1 + consumer), "n"(ProductTile::kGroup) : "memory");
}

// ---- TMA

DTRAIN_DEVICE void prefetch(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" : : "l"(&map) : "memory");
}
// The whole box counts for the barrier; what lies outside of the tensor is zero.
DTRAIN_DEVICE void load_box(std::uint32_t to, const CUtensorMap& map, BoxPlace at, std::uint32_t barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
               :
               : "r"(to), "l"(&map), "r"(at.column), "r"(at.row), "r"(barrier)
               : "memory");
}
// What lies outside of the tensor is dropped.
DTRAIN_DEVICE void store_box(const CUtensorMap& map, BoxPlace at, std::uint32_t from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
               :
               : "l"(&map), "r"(at.column), "r"(at.row), "r"(from)
               : "memory");
}
DTRAIN_DEVICE void end_stores() { asm volatile("cp.async.bulk.commit_group;" : : : "memory"); }
// The thread's stores have read shared memory.
DTRAIN_DEVICE void wait_until_read() { asm volatile("cp.async.bulk.wait_group.read 0;" : : : "memory"); }
DTRAIN_DEVICE void wait_until_stored() { asm volatile("cp.async.bulk.wait_group 0;" : : : "memory"); }
// What the thread wrote to shared memory is there for TMA.
DTRAIN_DEVICE void publish_to_tma() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }

// ---- wgmma, by all threads of a consumer

DTRAIN_DEVICE void begin_products() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }
DTRAIN_DEVICE void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }
template <int Running>
DTRAIN_DEVICE void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(Running) : "memory");
}
// The compiler may not move a use of a sum over this.
template <int Size>
DTRAIN_DEVICE void hold(float (&sums)[Size]) {
#pragma unroll
  for (int k = 0; k < Size; ++k) asm volatile("" : "+f"(sums[k]) : : "memory");
}

// Operands of the instruction by their numbers, and the sums.
#define DTRAIN_TEN(tens)                                                                                            \
  "%" #tens "0, %" #tens "1, %" #tens "2, %" #tens "3, %" #tens "4, %" #tens "5, %" #tens "6, %" #tens "7, %" #tens \
  "8, %" #tens "9, "
#define DTRAIN_EIGHT_SUMS(first)                                                                  \
  "+f"(sums[(first)]), "+f"(sums[(first) + 1]), "+f"(sums[(first) + 2]), "+f"(sums[(first) + 3]), \
      "+f"(sums[(first) + 4]), "+f"(sums[(first) + 5]), "+f"(sums[(first) + 6]), "+f"(sums[(first) + 7])
#define DTRAIN_32_SUMS(first)                                                                \
  DTRAIN_EIGHT_SUMS(first), DTRAIN_EIGHT_SUMS((first) + 8), DTRAIN_EIGHT_SUMS((first) + 16), \
      DTRAIN_EIGHT_SUMS((first) + 24)
#define DTRAIN_64_SUMS(first) DTRAIN_32_SUMS(first), DTRAIN_32_SUMS((first) + 32)
#define DTRAIN_128_SUMS(first) DTRAIN_64_SUMS(first), DTRAIN_64_SUMS((first) + 64)
// a, b: descriptors; adds: whether to what the sums are; then 1 where an operand is MN-major.
#define DTRAIN_WGMMA(n, type, numbers, a, b, adds, a_major, b_major, operands)                                       \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " adds ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type \
               "." type " {" numbers "}, " a ", " b ", p, 1, 1, " a_major ", " b_major ";\n}"                        \
               : operands                                                                                            \
               : "l"(a_of), "l"(b_of), "r"(adds_to), "n"(AMajor == Major::mn), "n"(BMajor == Major::mn)              \
               : "memory")
#define DTRAIN_WGMMA_OF(type)                                                                                      \
  if constexpr (N == 64) {                                                                                         \
    DTRAIN_WGMMA(64, type, DTRAIN_TEN() DTRAIN_TEN(1) DTRAIN_TEN(2) "%30, %31", "%32", "%33", "%34", "%35", "%36", \
                 DTRAIN_32_SUMS(0));                                                                               \
  } else if constexpr (N == 128) {                                                                                 \
    DTRAIN_WGMMA(128, type,                                                                                        \
                 DTRAIN_TEN() DTRAIN_TEN(1) DTRAIN_TEN(2) DTRAIN_TEN(3) DTRAIN_TEN(4)                              \
                     DTRAIN_TEN(5) "%60, %61, %62, %63",                                                           \
                 "%64", "%65", "%66", "%67", "%68", DTRAIN_64_SUMS(0));                                            \
  } else {                                                                                                         \
    DTRAIN_WGMMA(256, type,                                                                                        \
                 DTRAIN_TEN() DTRAIN_TEN(1) DTRAIN_TEN(2) DTRAIN_TEN(3) DTRAIN_TEN(4) DTRAIN_TEN(5) DTRAIN_TEN(6)  \
                     DTRAIN_TEN(7) DTRAIN_TEN(8) DTRAIN_TEN(9) DTRAIN_TEN(10)                                      \
                         DTRAIN_TEN(11) "%120, %121, %122, %123, %124, %125, %126, %127",                          \
                 "%128", "%129", "%130", "%131", "%132", DTRAIN_128_SUMS(0));                                      \
  }

// sums = a times b, added to sums where adds_to is not 0. In place by accumulator_at().
template <typename T, int N, Major AMajor, Major BMajor>
DTRAIN_DEVICE void multiply(float (&sums)[N / 2], std::uint64_t a_of, std::uint64_t b_of, std::int32_t adds_to) {
  static_assert(N == 64 || N == 128 || N == 256);
  if constexpr (std::is_same_v<T, Bf16>) {
    DTRAIN_WGMMA_OF("bf16")
  } else {
    DTRAIN_WGMMA_OF("f16")
  }
}

#undef DTRAIN_TEN
#undef DTRAIN_EIGHT_SUMS
#undef DTRAIN_32_SUMS
#undef DTRAIN_64_SUMS
#undef DTRAIN_128_SUMS
#undef DTRAIN_WGMMA
#undef DTRAIN_WGMMA_OF

}  // namespace dtrain::backend::cuda::hopper

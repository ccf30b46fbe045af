// Where each value of a product of matrices (product.hpp) lies in shared memory and in registers. Plain functions,
// which the kernel (product.cu) calls and by which a unit test computes whole products on a CPU.
//
// A block's first thread of the last warpgroup loads pieces of A and B by TMA into a ring of stages in shared memory;
// two warpgroups before it (consumers) multiply, 64 rows each. Rows of 128 bytes lie in shared memory in groups of
// eight, whose 16-byte chunks are swizzled. An operand is K-major where the values of one row of A (column of B) lie
// one behind the other in memory, and MN-major where those of one k do: wgmma reads both.
#pragma once

#include <cstdint>

#include "../../product.hpp"

namespace dtrain::backend::cuda {

enum class Major { k, mn };
constexpr Major major_of_a(Direction direction) { return leaves_splits(direction) ? Major::mn : Major::k; }
constexpr Major major_of_b(Direction direction) { return direction == Direction::forward ? Major::k : Major::mn; }

// ---- the ring of stages

// Where a thread is in it. Each stage has two barriers: `full` ends a phase when the loader has arrived and all bytes
// are there, `empty` when each warp of the consumers has arrived. Consumers wait for the end of phase() of `full`, the
// loader for that of phase_before() of `empty`: the first time round nothing has to be waited for.
struct StageRing {
  std::int32_t stages;
  std::int32_t stage = 0;
  std::uint32_t round = 0;
  DTRAIN_KERNEL constexpr std::uint32_t phase() const { return round & 1; }
  DTRAIN_KERNEL constexpr std::uint32_t phase_before() const { return phase() ^ 1; }
  DTRAIN_KERNEL constexpr void next() {
    if (++stage < stages) return;
    stage = 0;
    ++round;
  }
};
constexpr std::int32_t kConsumerWarps = ProductTile::kConsumers * ProductTile::kGroup / ProductTile::kWarp;

// ---- memory that TMA copies

constexpr std::int32_t kSwizzledRow = 128;  // bytes
constexpr std::int32_t kBoxWidth = kSwizzledRow / 2;
constexpr std::int32_t kSwizzledGroup = 8 * kSwizzledRow;

// The byte at which a byte lies: bits 4 to 6 of its address, xor bits 7 to 9. CU_TENSOR_MAP_SWIZZLE_128B.
DTRAIN_KERNEL constexpr std::uint32_t swizzled(std::uint32_t byte) { return byte ^ ((byte >> 7 & 7) << 4); }

// One copy of TMA is a box of kBoxWidth x `height` values, whose rows lie one behind the other in shared memory.
// `extent`: rows of A, or columns of B, in a tile.
struct OperandBoxes {
  std::int32_t count, height;
  DTRAIN_KERNEL constexpr std::int32_t bytes() const { return height * kSwizzledRow; }
};
DTRAIN_KERNEL constexpr OperandBoxes boxes_of(Major major, std::int32_t extent) {
  return major == Major::k ? OperandBoxes{1, extent} : OperandBoxes{extent / kBoxWidth, ProductTile::kK};
}

// Where a box begins in the matrix as it lies in memory: column (which is contiguous) and row.
struct BoxPlace {
  std::int32_t column, row;
};
DTRAIN_KERNEL constexpr BoxPlace box_at(Major major, std::int32_t box, std::int32_t first_mn, std::int32_t first_k) {
  return major == Major::k ? BoxPlace{first_k, first_mn} : BoxPlace{first_mn + box * kBoxWidth, first_k};
}

// ---- what wgmma reads: PTX ISA, "asynchronous warpgroup-level matrix shared memory layout"

// Bits 0-13 the address, 16-29 the leading offset, 32-45 the stride offset, each without its last four bits; 49-51 the
// base offset, which is 0 where groups of eight rows begin at multiples of 1,024; 62-63 the swizzle: 1 is 128 bytes.
DTRAIN_KERNEL constexpr std::uint64_t descriptor(std::uint32_t address, std::uint32_t leading, std::uint32_t stride) {
  constexpr std::uint32_t kBits = 0x3ffff;
  return std::uint64_t{(address & kBits) >> 4} | std::uint64_t{(leading & kBits) >> 4} << 16 |
         std::uint64_t{(stride & kBits) >> 4} << 32 | std::uint64_t{1} << 62;
}

// Sixteen k of an operand, from row (or column) `first` of its tile on, which begins at `address`. K-major: eight rows
// are a group of 1,024 bytes, the stride; a step in k is 32 bytes in its rows, and there is no leading offset.
// MN-major: a row of 128 bytes is 64 values of one k, eight k are a group of 1,024 bytes, the stride; the next 64
// values are the next box, the leading offset.
DTRAIN_KERNEL constexpr std::uint64_t operand_descriptor(Major major, std::uint32_t address, std::int32_t first,
                                                         std::int32_t step) {
  constexpr std::uint32_t kBox = ProductTile::kK * kSwizzledRow;
  const auto at = static_cast<std::uint32_t>(first), k = static_cast<std::uint32_t>(step * ProductTile::kStepK);
  if (major == Major::k) return descriptor(address + at * kSwizzledRow + k * 2, 16, kSwizzledGroup);
  return descriptor(address + at / kBoxWidth * kBox + k * kSwizzledRow, kBox, kSwizzledGroup);
}

// ---- what wgmma leaves: m64nNk16's float32 accumulators

struct AccumulatorPlace {
  std::int32_t row, column;  // of the 64 x N of one consumer
};
// Accumulators 2k and 2k + 1 are neighbours in one row.
DTRAIN_KERNEL constexpr AccumulatorPlace accumulator_at(std::int32_t thread, std::int32_t accumulator) {
  const std::int32_t warp = thread / ProductTile::kWarp, lane = thread % ProductTile::kWarp;
  return {16 * warp + lane / 4 + 8 * (accumulator / 2 % 2), 8 * (accumulator / 4) + 2 * (lane % 4) + accumulator % 2};
}

// Where a value of a consumer's 64 x N waits for TMA, in boxes of 64 columns.
DTRAIN_KERNEL constexpr std::uint32_t result_place(std::int32_t row, std::int32_t column) {
  const std::int32_t box = column / kBoxWidth * (ProductTile::kGroupM * kSwizzledRow);
  return swizzled(static_cast<std::uint32_t>(box + row * kSwizzledRow + column % kBoxWidth * 2));
}

// ---- the moments of a warp's 16 rows

// A thread has N/2 of them: first the sums of its N/4 columns in its two rows, in the order of its accumulators, then
// the squares. In each of three steps it gives half of what it has to the lane that differs from it in one bit, and
// gets that lane's half of the others: the upper half stays where the bit is set. So 8 rows are added in a fixed tree.
constexpr std::int32_t kMomentSteps = 3;
DTRAIN_KERNEL constexpr std::int32_t moment_bit(std::int32_t step) { return 16 >> step; }

struct MomentPlace {
  std::int32_t kind, column;  // kind 0: sums, 1: squares
};
// What value k of a lane's last N/16 is.
template <int N>
DTRAIN_KERNEL constexpr MomentPlace moment_at(std::int32_t lane, std::int32_t k) {
  const std::int32_t quarter = lane / 4 % 4, of_thread = quarter * (N / 16) + k;
  return {lane / 16, accumulator_at(lane, of_thread / 2 * 4 + of_thread % 2).column};
}

}  // namespace dtrain::backend::cuda

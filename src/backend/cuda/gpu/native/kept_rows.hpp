// Rows of a norm's values that stay in shared memory while all sums are made. Each thread has the rows of one part, in
// places that no other thread touches: so it needs no barrier to use them, and may begin to fill a place for the next
// slab once it has used it.
#pragma once

#include <bit>

#include "async_copy.hpp"
#include "slab_plan.hpp"

namespace dtrain::backend::cuda {

// Copies come in groups, so that a thread can use the first rows while others are on their way.
constexpr int kCopyGroups = 4;

template <typename T, int Tensors>
class KeptRows {
 public:
  // `has`: the thread has a part at all.
  DTRAIN_KERNEL KeptRows(const SlabPlan& plan, const RowParts& cut, std::int64_t part, bool has, std::int32_t thread,
                         unsigned char* memory)
      : threads_(plan.threads),
        thread_(thread),
        part_(part),
        parts_(cut.parts),
        rows_(has && part < cut.rows ? static_cast<std::int32_t>((cut.rows - part + cut.parts - 1) / cut.parts) : 0),
        kept_(rows_ < plan.kept ? rows_ : plan.kept),
        held_(plan.held),
        memory_(reinterpret_cast<Pack<T>*>(memory)) {}

  DTRAIN_KERNEL std::int32_t rows() const { return rows_; }  // of the part
  DTRAIN_KERNEL std::int32_t kept() const { return kept_; }  // the first of them
  // Those behind are held in registers, up to here.
  DTRAIN_KERNEL std::int32_t end_of_held() const { return kept_ + held_ < rows_ ? kept_ + held_ : rows_; }
  DTRAIN_KERNEL std::int64_t row(std::int32_t index) const { return part_ + std::int64_t{index} * parts_; }
  DTRAIN_KERNEL Pack<T>& at(std::int32_t index, int tensor) const {
    return memory_[(index * Tensors + tensor) * threads_ + thread_];
  }

  // work(first, end) for the rows of each group.
  template <typename Work>
  DTRAIN_KERNEL void for_groups(Work work) const {
    for (int group = 0; group < kCopyGroups; ++group) work(group, first_of(group), first_of(group + 1));
  }
  // Begins to bring a row to its place.
  DTRAIN_KERNEL void fetch(std::int32_t index, const T* const (&from)[Tensors], std::int32_t c,
                           std::int64_t channel) const {
    DTRAIN_UNROLL
    for (int tensor = 0; tensor < Tensors; ++tensor) {
      begin_copy(from[tensor] + row(index) * c + channel, at(index, tensor));
    }
  }
  // For the rows of a group, where the groups behind it are the last that were ended.
  DTRAIN_KERNEL static void wait_for_group(int group) {
    static_assert(kCopyGroups == 4);
    if (group == 0) return wait_for_copies<3>();
    if (group == 1) return wait_for_copies<2>();
    if (group == 2) return wait_for_copies<1>();
    wait_for_copies<0>();
  }

 private:
  DTRAIN_KERNEL std::int32_t first_of(int group) const { return kept_ * group / kCopyGroups; }

  const std::int32_t threads_, thread_;
  const std::int64_t part_, parts_;
  const std::int32_t rows_, kept_, held_;
  Pack<T>* const memory_;
};

// Rows that a thread holds in registers: all indices are known when compiled. As words: a GPU's compiler, which sees a
// pack's values apart, would else take a register for each.
template <typename T, int Tensors, int Rows>
class HeldRows {
 public:
  DTRAIN_KERNEL void put(int row, int tensor, const Pack<T>& pack) {
    Words& to = words_[row][tensor];
    to = std::bit_cast<Words>(pack);
#ifdef __CUDA_ARCH__
    asm volatile("" : "+r"(to.word[0]), "+r"(to.word[1]), "+r"(to.word[2]), "+r"(to.word[3]));
#endif
  }
  DTRAIN_KERNEL Pack<T> at(int row, int tensor) const { return std::bit_cast<Pack<T>>(words_[row][tensor]); }

 private:
  struct alignas(16) Words {
    std::uint32_t word[4];
  };
  Words words_[Rows > 0 ? Rows : 1][Tensors];
};
// for_some() over all of them: use(k, r, index) with r known when compiled.
template <int AtOnce, int Rows, typename Load, typename Use>
DTRAIN_KERNEL void for_held(std::int32_t first, std::int32_t end, Load load, Use use) {
  DTRAIN_UNROLL
  for (int r = 0; r < Rows; r += AtOnce) {
#ifdef __CUDA_ARCH__
    asm volatile("" : "+r"(first));  // where rows lie is computed anew, and not kept in registers for all of them
#endif
    DTRAIN_UNROLL
    for (int k = 0; k < AtOnce; ++k) {
      if (first + r + k < end) load(k, r + k, first + r + k);
    }
    DTRAIN_UNROLL
    for (int k = 0; k < AtOnce; ++k) {
      if (first + r + k < end) use(k, r + k, first + r + k);
    }
  }
}

// Calls load(k, index) for some indices from `first` on, then use(k, index) for the same ones, k < AtOnce.
template <int AtOnce, typename Load, typename Use>
DTRAIN_KERNEL void for_some(std::int32_t first, std::int32_t end, Load load, Use use) {
  for (; first < end; first += AtOnce) {
    DTRAIN_UNROLL
    for (int k = 0; k < AtOnce; ++k) {
      if (first + k < end) load(k, first + k);
    }
    DTRAIN_UNROLL
    for (int k = 0; k < AtOnce; ++k) {
      if (first + k < end) use(k, first + k);
    }
  }
}

}  // namespace dtrain::backend::cuda

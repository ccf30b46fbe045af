// Which norms go slab by slab on a chip, and what that spares.
#pragma once

#include "../../call.hpp"
#include "slab_plan.hpp"

namespace dtrain::backend::cuda {

// A GELU is long: rows in registers, whose every use is code of its own, would make too much code.
template <typename Work>
constexpr bool kMayHold = true;
template <typename T>
constexpr bool kMayHold<NormForward<T, true>> = false;
template <typename T>
constexpr bool kMayHold<NormBackward<T, true>> = false;

template <typename T, bool Gelu, bool NormsResidual>
SlabPlan slabs_of(const NormForward<T, Gelu, NormsResidual>& work, const ChipFacts& chip) {
  return plan_slabs<T>(work.statistics.sums.cut, work.apply.coefficients.c, 1, chip, !Gelu);
}
// What a row's place takes in the stead of dy is the gradient as it is stored: that must be all that dx is made of.
template <typename T, bool Gelu>
SlabPlan slabs_of(const NormBackward<T, Gelu>& work, const ChipFacts& chip) {
  const auto& sums = work.totals.sums;
  if (!sums.kept && (Gelu || sums.incoming.dy2)) return {};
  return plan_slabs<T>(sums.cut, work.gradient.coefficients.c, 2, chip, !Gelu);
}

// Bytes that a norm reads a second time; 0 for other work.
template <typename T, bool Gelu, bool NormsResidual>
std::int64_t read_again(const NormForward<T, Gelu, NormsResidual>& work, const ChipFacts& chip) {
  const SlabPlan plan = slabs_of(work, chip);
  const std::int64_t all = work.apply.cut.rows * work.apply.coefficients.c * static_cast<std::int64_t>(sizeof(T));
  return plan.worth_it() ? plan.read_again : all;
}
template <typename T, bool Gelu>
std::int64_t read_again(const NormBackward<T, Gelu>& work, const ChipFacts& chip) {
  const SlabPlan plan = slabs_of(work, chip);
  const std::int64_t all = work.gradient.cut.rows * work.gradient.coefficients.c * static_cast<std::int64_t>(sizeof(T));
  return plan.worth_it() ? plan.read_again : all * (work.gradient.incoming.dy2 ? 3 : 2);
}
template <typename Other>
std::int64_t read_again(const Other&, const ChipFacts&) {
  return 0;
}

template <typename Work>
concept GoesBySlabs = requires(const Work& work) {
  slabs_of(work, ChipFacts{});
};

}  // namespace dtrain::backend::cuda

// The native kernel of a whole norm, replayed block by block and step by step: the bits of its definition. Which norms
// it is for, by the chip.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "call.hpp"
#include "gpu/native/norm_slab.hpp"
#include "gpu/native/slab_choice.hpp"
#include "random_values.hpp"

namespace dtrain::backend::cuda {
namespace {

void run_by_definition(const Call& call) {
  for (const Call& part : definition_of(call)) run_by_definition(part);
  call.work.visit([]<typename W>(const W& kernel) {
    if constexpr (IsKernel<W>) {
      for (std::int64_t i = kernel.threads() - 1; i >= 0; --i) kernel(i);
    }
  });
}

// Blocks and threads from the last to the first; a block's sums are gone when others have come so far.
template <bool Holds, typename Work>
void run_by_slabs(const Work& work, const SlabPlan& plan) {
  using Block = SlabOf<Work, Holds>;
  const std::int32_t blocks = plan.at_once * plan.blocks;
  const auto packs = static_cast<std::size_t>(plan.shared_bytes() / kPackBytes + 1);
  std::vector<std::vector<Pack<float>>> shared(static_cast<std::size_t>(blocks));
  std::vector<typename Block::Held> registers(static_cast<std::size_t>(blocks * plan.threads));
  const auto held = [&](std::int32_t block, std::int32_t thread) ->
      typename Block::Held& { return registers[static_cast<std::size_t>(block * plan.threads + thread)]; };
  const auto memory = [&](std::int32_t block) {
    return reinterpret_cast<unsigned char*>(shared[static_cast<std::size_t>(block)].data());
  };
  const auto spoil_sums = [&](std::int32_t block) {
    std::fill_n(memory(block), plan.sum_bytes, static_cast<unsigned char>(0xff));
  };
  const auto all = [&](auto step) {
    for (std::int32_t thread = plan.threads - 1; thread >= 0; --thread) step(thread);
  };
  for (std::vector<Pack<float>>& each : shared) each.resize(packs);
  for (std::int32_t at = blocks - 1; at >= 0; --at) {
    std::fill_n(memory(at), plan.shared_bytes(), static_cast<unsigned char>(0xff));
    all([&](std::int32_t thread) { Block(work, plan, at, memory(at)).begin(thread); });
  }
  for (std::int32_t slab = 0; slab < plan.slabs(); ++slab) {
    for (std::int32_t at = blocks - 1; at >= 0; --at) {
      const Block block(work, plan, at, memory(at));
      if (!block.has(slab)) continue;
      spoil_sums(at);
      all([&](std::int32_t thread) { block.sum(slab, thread, held(at, thread)); });
      all([&](std::int32_t thread) { block.fold(slab, thread); });
    }
    for (std::int32_t at = blocks - 1; at >= 0; --at) {
      const Block block(work, plan, at, memory(at));
      if (!block.has(slab)) continue;
      spoil_sums(at);
      all([&](std::int32_t thread) { block.sum_groups(slab, thread); });
      all([&](std::int32_t thread) { block.finish(slab, thread); });
      all([&](std::int32_t thread) { block.make(slab, thread, held(at, thread)); });
    }
  }
}

// All that a norm reads and writes; what nothing wrote is NaN.
template <typename T>
struct NormMemory {
  NormMemory(std::int64_t rows, std::int32_t c)
      : cut(cut_rows(rows, packs_of(c, Pack<T>::size))),
        values(static_cast<std::size_t>(4 * rows * c)),
        bits(static_cast<std::size_t>(rows * c / Pack<T>::size)),
        floats(random_values<float>((2 * NormCoefficients::rows + 4) * c, 9, -1, 3)),
        parts(static_cast<std::size_t>(cut.parts * 2 * c)),
        folds(static_cast<std::size_t>(cut.folded_parts * 2 * c)) {
    std::memset(values.data(), 0xff, values.size() * sizeof(T));
  }
  const RowParts cut;
  std::vector<T> values;
  std::vector<std::uint8_t> bits;
  std::vector<float> floats, parts, folds;
};

struct Ways {
  bool relu = false, residual = false, dy2 = false, keeps = false, addend = false;
};

template <typename T>
struct Problem {
  Problem(std::int64_t of_rows, std::int32_t of_c)
      : rows(of_rows),
        c(of_c),
        x(random_values<T>(rows * c, 1, -1, 3)),
        dy(random_values<T>(rows * c, 2, -2, 2)),
        other(random_values<T>(rows * c, 3, -3, 1)),
        passed(static_cast<std::size_t>(rows * c / Pack<T>::size), 0xa5),
        gamma(random_values<float>(2 * c, 4, -1, 3)) {}

  template <bool Gelu = false, bool NormsResidual = false>
  NormForward<T, Gelu, NormsResidual> forward(NormMemory<T>& to, const Ways& ways) const {
    float* const floats = to.floats.data();
    const NormCoefficients coefficients{floats, c}, others{floats + NormCoefficients::rows * c, c};
    float* const mean = floats + 2 * NormCoefficients::rows * c;
    return {{{x.data(), to.parts.data(), to.cut, c},
             {to.parts.data(), to.folds.data(), to.cut, 2 * c},
             {to.folds.data(),
              x.data(),
              to.cut,
              {gamma.data(), gamma.data() + c, 1e-5f},
              coefficients,
              mean,
              mean + c,
              3.0f},
             nullptr},
            {x.data(), ways.residual ? other.data() : nullptr, others, to.values.data(),
             ways.relu ? to.bits.data() : nullptr, coefficients, few_rows(rows), ways.relu}};
  }
  template <bool Gelu = false>
  NormBackward<T, Gelu> backward(NormMemory<T>& to, const Ways& ways) const {
    float* const floats = to.floats.data();
    const NormCoefficients coefficients{floats, c};
    float* const dgamma = floats + 2 * NormCoefficients::rows * c;
    T* const kept = ways.keeps ? to.values.data() + rows * c : nullptr;
    const T* const dy2 = ways.dy2 ? other.data() : nullptr;
    const std::uint8_t* const bits = ways.residual ? passed.data() : nullptr;
    const NormIncoming<T> left =
        ways.keeps ? NormIncoming<T>{kept, nullptr, nullptr, false} : NormIncoming<T>{dy.data(), dy2, bits, ways.relu};
    return {{{{dy.data(), dy2, bits, ways.relu}, x.data(), kept, to.parts.data(), to.cut, coefficients},
             {to.parts.data(), to.folds.data(), to.cut, 2 * c},
             {to.folds.data(), to.cut, rows, coefficients, dgamma, dgamma + c},
             nullptr},
            {left, x.data(), ways.addend ? other.data() : nullptr, to.values.data(), coefficients, few_rows(rows)}};
  }

  const std::int64_t rows;
  const std::int32_t c;
  const std::vector<T> x, dy, other;
  const std::vector<std::uint8_t> passed;
  const std::vector<float> gamma;
};

template <typename V>
bool same_bits(const std::vector<V>& a, const std::vector<V>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(V)) == 0;
}

// make(memory) both ways, by slabs for all tiles and numbers of them that fit a chip; returns how many did.
template <typename T, typename Make>
int expect_same_bits(const Problem<T>& problem, std::int32_t tensors, const ChipFacts& chip, Make make) {
  NormMemory<T> defined(problem.rows, problem.c);
  run_by_definition({"", make(defined)});
  const std::int32_t packs_in_row = problem.c / Pack<T>::size, widest = sum_tile(packs_in_row).packs;
  int fitted = 0;
  for (std::int32_t packs = widest; packs > 0; packs = packs % 2 == 0 ? packs / 2 : 0) {
    for (const auto& [at_once, holds] : {std::pair{1, true}, {1, false}, {2, true}, {3, false}}) {
      const SlabPlan plan = fit_slabs<T>(defined.cut, problem.c, tensors, chip, holds, packs, at_once);
      if (!plan.worth_it()) continue;
      SCOPED_TRACE(::testing::Message() << packs << " packs, " << at_once << " at once, " << plan.kept << " rows kept");
      EXPECT_LE(plan.shared_bytes(), chip.block_bytes);
      ++fitted;
      NormMemory<T> native(problem.rows, problem.c);
      plan.held > 0 ? run_by_slabs<true>(make(native), plan) : run_by_slabs<false>(make(native), plan);
      EXPECT_TRUE(same_bits(defined.values, native.values));
      EXPECT_TRUE(same_bits(defined.bits, native.bits));
      EXPECT_TRUE(same_bits(defined.floats, native.floats));
      EXPECT_TRUE(same_bits(defined.folds, native.folds));
    }
  }
  return fitted;
}

struct Case {
  std::int64_t rows;
  std::int32_t c;
  ChipFacts chip;
};
// All rows on the chip, some of them, almost none; one tile and several, a last slab that is not full; one fold in a
// block and several, a last one that is not full, blocks without a part; parts with a row more than others.
const Case kCases[] = {{3000, 16, {40, 64 << 10}}, {70, 24, {2, 32 << 10}},     {4001, 64, {3, 48 << 10}},
                       {2500, 96, {6, 40 << 10}},  {1000, 256, {7, 48 << 10}},  {6000, 32, {5, 24 << 10}},
                       {20000, 8, {3, 30 << 10}},  {33, 512, {132, 227 << 10}}, {3000, 128, {4, 24 << 10}}};

template <typename T>
class NormSlabsOn : public ::testing::Test {};
using SlabTypes = ::testing::Types<float, Bf16>;  // of both sizes
TYPED_TEST_SUITE(NormSlabsOn, SlabTypes);

TYPED_TEST(NormSlabsOn, GiveTheBitsOfTheDefinitionForward) {
  using T = TypeParam;
  int fitted = 0;
  for (const auto& [rows, c, chip] : kCases) {
    SCOPED_TRACE(::testing::Message() << rows << " x " << c);
    const Problem<T> problem(rows, c);
    for (const Ways& ways : {Ways{}, Ways{.relu = true, .residual = true}}) {
      fitted += expect_same_bits(problem, 1, chip, [&](NormMemory<T>& to) { return problem.forward(to, ways); });
    }
    const Ways both{.relu = true, .residual = true};
    fitted +=
        expect_same_bits(problem, 1, chip, [&](NormMemory<T>& to) { return problem.template forward<true>(to, {}); });
    fitted += expect_same_bits(problem, 1, chip,
                               [&](NormMemory<T>& to) { return problem.template forward<false, true>(to, both); });
  }
  EXPECT_GT(fitted, 60);
}

TYPED_TEST(NormSlabsOn, GiveTheBitsOfTheDefinitionBackward) {
  using T = TypeParam;
  int fitted = 0;
  for (const auto& [rows, c, chip] : kCases) {
    SCOPED_TRACE(::testing::Message() << rows << " x " << c);
    const Problem<T> problem(rows, c);
    for (const Ways& ways : {Ways{}, Ways{.relu = true}, Ways{.relu = true, .residual = true, .addend = true},
                             Ways{.relu = true, .residual = true, .dy2 = true, .keeps = true}}) {
      fitted += expect_same_bits(problem, 2, chip, [&](NormMemory<T>& to) { return problem.backward(to, ways); });
    }
    fitted += expect_same_bits(problem, 2, chip, [&](NormMemory<T>& to) {
      return problem.template backward<true>(to, {.keeps = true, .addend = true});
    });
  }
  EXPECT_GT(fitted, 60);
}

}  // namespace
}  // namespace dtrain::backend::cuda

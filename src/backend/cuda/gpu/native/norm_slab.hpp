// What a block of norm_slabs.cu does between its barriers, thread by thread: so the unit tests replay it on a CPU. For
// each slab: sum(), fold(), all blocks of its tile come so far, sum_groups(), finish(), make().
#pragma once

#include "kept_rows.hpp"
#include "sum_block.hpp"

namespace dtrain::backend::cuda {

// What both directions have in common. A block keeps to one of the tiles of each slab, and to its parts of the rows.
template <typename Sums, typename Finish, int Tensors>
class NormSlab {
 public:
  using T = typename Sums::Result::Value;
  using Folding = SumBlock<Sums, Finish>;
  using Rows = KeptRows<T, Tensors>;
  using At = ChannelsOfPart<T, true>;

  DTRAIN_KERNEL NormSlab(const FoldedSums<Sums, Finish>& totals, const SlabPlan& plan, std::int32_t block,
                         unsigned char* memory)
      : totals_(totals),
        plan_(plan),
        tile_(block / plan.blocks),
        first_fold_(block % plan.blocks * plan.folds),
        memory_(memory) {}

  DTRAIN_KERNEL bool has(std::int32_t slab) const { return tile_of(slab) < plan_.tiles; }
  DTRAIN_KERNEL std::int32_t tile_of(std::int32_t slab) const { return slab * plan_.at_once + tile_; }

  DTRAIN_KERNEL void fold(std::int32_t slab, std::int32_t thread) const {
    folding(slab).fold_parts(thread, reinterpret_cast<const float*>(memory_));
  }
  DTRAIN_KERNEL void sum_groups(std::int32_t slab, std::int32_t thread) const {
    folding(slab).sum_groups_of_folds(thread, reinterpret_cast<double*>(memory_));
  }
  // Every block of a tile does this, and writes the same.
  DTRAIN_KERNEL void finish(std::int32_t slab, std::int32_t thread) const {
    folding(slab).finish(thread, reinterpret_cast<const double*>(memory_));
  }

 protected:
  DTRAIN_KERNEL Folding folding(std::int32_t slab) const {
    return {totals_, {plan_.packs, tile_of(slab), first_fold_, plan_.folds, plan_.threads}};
  }
  DTRAIN_KERNEL bool has_part(std::int32_t slab, std::int32_t thread) const {
    return has(slab) && folding(slab).has_part(thread);
  }
  DTRAIN_KERNEL At at(std::int32_t slab, std::int32_t thread) const {
    return folding(slab).template part_of<true>(thread);
  }
  DTRAIN_KERNEL Rows rows(std::int32_t slab, std::int32_t thread) const {
    return {plan_, totals_.sums.cut, at(slab, thread).part, has_part(slab, thread), thread, memory_ + plan_.sum_bytes};
  }
  DTRAIN_KERNEL void put(std::int32_t slab, std::int32_t thread, const typename Sums::Result& sums) const {
    folding(slab).put(thread, sums, reinterpret_cast<float*>(memory_));
  }
  // For the first slab; for others make() does it.
  DTRAIN_KERNEL void fetch_first(std::int32_t thread, const T* const (&from)[Tensors]) const {
    const Rows own = rows(0, thread);
    const At here = at(0, thread);
    own.for_groups([&](int, std::int32_t first, std::int32_t end) {
      for (std::int32_t index = first; index < end; ++index)
        own.fetch(index, from, here.channels.c, here.channels.first);
      end_group();
    });
  }

  const FoldedSums<Sums, Finish>& totals_;
  const SlabPlan& plan_;
  const std::int32_t tile_, first_fold_;
  unsigned char* const memory_;  // sums, then rows
};

// Holds: rows in registers too.
template <typename Work, bool Holds>
class SlabOf;

template <typename T, bool Gelu, bool NormsResidual, bool Holds>
class SlabOf<NormForward<T, Gelu, NormsResidual>, Holds> : public NormSlab<NormSums<T>, NormFromBatch<T>, 1> {
 public:
  static constexpr int kHeld = Holds ? kHeldPacks : 0;
  using Held = HeldRows<T, 1, kHeld>;
  using Work = NormForward<T, Gelu, NormsResidual>;
  using Base = NormSlab<NormSums<T>, NormFromBatch<T>, 1>;
  DTRAIN_KERNEL SlabOf(const Work& work, const SlabPlan& plan, std::int32_t block, unsigned char* memory)
      : Base(work.statistics, plan, block, memory), apply_(work.apply) {}

  DTRAIN_KERNEL void begin(std::int32_t thread) const { this->fetch_first(thread, {apply_.x}); }

  DTRAIN_KERNEL void sum(std::int32_t slab, std::int32_t thread, Held& held) const {
    if (!this->has_part(slab, thread)) return;
    const typename Base::Rows own = this->rows(slab, thread);
    const typename Base::At at = this->at(slab, thread);
    for_held<kHeld, kHeld>(
        own.kept(), own.end_of_held(),
        [&](int, int r, std::int32_t index) { held.put(r, 0, at.channels.load(apply_.x, own.row(index))); },
        [](int, int, std::int32_t) {});
    const Pack<T> start = at.channels.load(apply_.x, 0);
    typename NormSums<T>::Result sums = {};
    Pack<T> packs[NormSums<T>::kMoreAtOnce];
    const auto add = [&](int k, std::int32_t) { NormSums<T>::add_row(packs[k], start, sums); };
    own.for_groups([&](int group, std::int32_t first, std::int32_t end) {
      own.wait_for_group(group);
      for_some<kAtOnce>(
          first, end, [&](int k, std::int32_t index) { packs[k] = own.at(index, 0); }, add);
    });
    for_held<1, kHeld>(
        own.kept(), own.end_of_held(), [](int, int, std::int32_t) {},
        [&](int, int r, std::int32_t) { NormSums<T>::add_row(held.at(r, 0), start, sums); });
    for_some<NormSums<T>::kMoreAtOnce>(
        own.end_of_held(), own.rows(),
        [&](int k, std::int32_t index) { packs[k] = at.channels.load(apply_.x, own.row(index)); }, add);
    this->put(slab, thread, sums);
  }

  DTRAIN_KERNEL void make(std::int32_t slab, std::int32_t thread, const Held& held) const {
    if (!this->has_part(slab, thread)) return;
    const typename Base::Rows own = this->rows(slab, thread);
    const typename Base::At at = this->at(slab, thread);
    const auto lines = load_lines(apply_.coefficients, at.channels), other_lines = apply_.residual_lines(at.channels);
    Pack<T> inputs[kAtOnce], others[kAtOnce];
    // From the last on, which were read last and may still be in the second cache.
    for_some<kAtOnce>(
        0, own.rows() - own.end_of_held(),
        [&](int k, std::int32_t behind) {
          const std::int64_t row = own.row(own.rows() - 1 - behind);
          inputs[k] = at.channels.load(apply_.x, row);
          if (apply_.residual) others[k] = at.channels.load(apply_.residual, row);
        },
        [&](int k, std::int32_t behind) {
          apply_.make_row(inputs[k], others[k], lines, other_lines, at, own.row(own.rows() - 1 - behind));
        });
    for_held<kAtOnce, kHeld>(
        own.kept(), own.end_of_held(),
        [&](int k, int, std::int32_t index) {
          if (apply_.residual) others[k] = at.channels.load(apply_.residual, own.row(index));
        },
        [&](int k, int r, std::int32_t index) {
          apply_.make_row(held.at(r, 0), others[k], lines, other_lines, at, own.row(index));
        });
    const bool more = this->has(slab + 1);
    const std::int64_t next = this->at(slab + 1, thread).channels.first;
    own.for_groups([&](int, std::int32_t first, std::int32_t end) {
      for_some<kAtOnce>(
          first, end,
          [&](int k, std::int32_t index) {
            inputs[k] = own.at(index, 0);
            if (apply_.residual) others[k] = at.channels.load(apply_.residual, own.row(index));
          },
          [&](int k, std::int32_t index) {
            apply_.make_row(inputs[k], others[k], lines, other_lines, at, own.row(index));
            if (more) own.fetch(index, {apply_.x}, at.channels.c, next);
          });
      end_group();
    });
  }

 private:
  const NormApply<T, Gelu, NormsResidual>& apply_;
};

template <typename T, bool Gelu, bool Holds>
class SlabOf<NormBackward<T, Gelu>, Holds> : public NormSlab<NormGradientSums<T, Gelu>, NormGradientFinish, 2> {
 public:
  static constexpr int kHeld = Holds ? kHeldPacks / 2 : 0;
  using Held = HeldRows<T, 2, kHeld>;
  using Work = NormBackward<T, Gelu>;
  using Base = NormSlab<NormGradientSums<T, Gelu>, NormGradientFinish, 2>;
  DTRAIN_KERNEL SlabOf(const Work& work, const SlabPlan& plan, std::int32_t block, unsigned char* memory)
      : Base(work.totals, plan, block, memory), sums_(work.totals.sums), gradient_(work.gradient) {}

  DTRAIN_KERNEL void begin(std::int32_t thread) const { this->fetch_first(thread, {sums_.x, sums_.incoming.dy}); }

  // The gradient as it is stored stays where dy was.
  DTRAIN_KERNEL void sum(std::int32_t slab, std::int32_t thread, Held& held) const {
    if (!this->has_part(slab, thread)) return;
    const typename Base::Rows own = this->rows(slab, thread);
    const typename Base::At at = this->at(slab, thread);
    for_held<kHeld, kHeld>(
        own.kept(), own.end_of_held(),
        [&](int, int r, std::int32_t index) {
          held.put(r, 0, at.channels.load(sums_.x, own.row(index)));
          held.put(r, 1, at.channels.load(sums_.incoming.dy, own.row(index)));
        },
        [](int, int, std::int32_t) {});
    const auto lines = load_lines(sums_.coefficients, at.channels);
    typename NormGradientSums<T, Gelu>::Result sums = {};
    typename NormGradientSums<T, Gelu>::Read behind[kAtOnce];
    Pack<T> inputs[kAtOnce];
    const auto add = [&](int k, std::int32_t index) {
      const Pack<T> stored = sums_.add_row(behind[k], inputs[k], lines, sums);
      if (sums_.kept) at.channels.store(stored, sums_.kept, own.row(index));
      return stored;
    };
    own.for_groups([&](int group, std::int32_t first, std::int32_t end) {
      own.wait_for_group(group);
      for_some<kAtOnce>(
          first, end,
          [&](int k, std::int32_t index) {
            inputs[k] = own.at(index, 0);
            behind[k] = sums_.incoming.read(at, own.row(index), own.at(index, 1));
          },
          [&](int k, std::int32_t index) { own.at(index, 1) = add(k, index); });
    });
    for_held<kAtOnce, kHeld>(
        own.kept(), own.end_of_held(),
        [&](int k, int r, std::int32_t index) {
          inputs[k] = held.at(r, 0);
          behind[k] = sums_.incoming.read(at, own.row(index), held.at(r, 1));
        },
        [&](int k, int r, std::int32_t index) { held.put(r, 1, add(k, index)); });
    for_some<kAtOnce>(
        own.end_of_held(), own.rows(),
        [&](int k, std::int32_t index) {
          inputs[k] = at.channels.load(sums_.x, own.row(index));
          behind[k] = sums_.incoming.read(at, own.row(index));
        },
        add);
    sums_.finish_sums(at.channels, sums);
    this->put(slab, thread, sums);
  }

  DTRAIN_KERNEL void make(std::int32_t slab, std::int32_t thread, const Held& held) const {
    if (!this->has_part(slab, thread)) return;
    const typename Base::Rows own = this->rows(slab, thread);
    const typename Base::At at = this->at(slab, thread);
    const auto lines = load_lines(gradient_.coefficients, at.channels);
    const auto gradient_lines = load_gradient_lines(gradient_.coefficients, at.channels);
    typename NormIncoming<T>::Read behind[kAtOnce];
    Pack<T> inputs[kAtOnce], others[kAtOnce];
    // From the last on, which were read last and may still be in the second cache.
    for_some<kAtOnce>(
        0, own.rows() - own.end_of_held(),
        [&](int k, std::int32_t from_last) {
          const std::int64_t row = own.row(own.rows() - 1 - from_last);
          behind[k] = gradient_.incoming.read(at, row);
          inputs[k] = at.channels.load(gradient_.x, row);
          if (gradient_.addend) others[k] = at.channels.load(gradient_.addend, row);
        },
        [&](int k, std::int32_t from_last) {
          gradient_.make_row([&](int j, float x) { return gradient_.incoming.gradient(behind[k], j, x, lines); },
                             inputs[k], others[k], lines, gradient_lines, at.channels,
                             own.row(own.rows() - 1 - from_last));
        });
    for_held<kAtOnce, kHeld>(
        own.kept(), own.end_of_held(),
        [&](int k, int r, std::int32_t index) {
          inputs[k] = held.at(r, 0);
          behind[k].dy = held.at(r, 1);
          if (gradient_.addend) others[k] = at.channels.load(gradient_.addend, own.row(index));
        },
        [&](int k, int, std::int32_t index) {
          gradient_.make_row([&](int j, float) { return widen(behind[k].dy.values[j]); }, inputs[k], others[k], lines,
                             gradient_lines, at.channels, own.row(index));
        });
    const bool more = this->has(slab + 1);
    const std::int64_t next = this->at(slab + 1, thread).channels.first;
    own.for_groups([&](int, std::int32_t first, std::int32_t end) {
      for_some<kAtOnce>(
          first, end,
          [&](int k, std::int32_t index) {
            inputs[k] = own.at(index, 0);
            behind[k].dy = own.at(index, 1);
            if (gradient_.addend) others[k] = at.channels.load(gradient_.addend, own.row(index));
          },
          [&](int k, std::int32_t index) {
            gradient_.make_row([&](int j, float) { return widen(behind[k].dy.values[j]); }, inputs[k], others[k], lines,
                               gradient_lines, at.channels, own.row(index));
            if (more) own.fetch(index, {gradient_.x, sums_.incoming.dy}, at.channels.c, next);
          });
      end_group();
    });
  }

 private:
  const NormGradientSums<T, Gelu>& sums_;
  const NormGradient<T>& gradient_;
};

}  // namespace dtrain::backend::cuda

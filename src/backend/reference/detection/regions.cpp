// The layers between the two stages of a detector. What they compute of one picture is that of all backends of the
// host; its judge is torchvision.
#include "../../detection/region_align.hpp"
#include "../../detection/region_loss.hpp"
#include "../layers.hpp"
#include "picture_samples.hpp"

namespace dtrain::backend::reference {
namespace {

std::vector<Region> regions_of(const Samples& x, int sample) {
  return read_regions(head_of(x, sample), static_cast<std::size_t>(x.pixels()));
}

RegionDraw draw_of(const DrawKey& key, int sample) { return {key.step, key.node, key.sample_ids[sample]}; }

RegionHeads<const float> heads_of(const RegionInputs& inputs, int sample) {
  RegionHeads<const float> heads{{head_of(*inputs[0], sample), head_of(*inputs[1], sample)},
                                 {head_of(*inputs[3], sample), head_of(*inputs[4], sample)},
                                 {}};
  if (inputs.size() > 6) heads.masks = head_of(*inputs[6], sample);
  return heads;
}

int rows_of_masks(const nn::RegionLoss& layer, const RegionInputs& inputs) {
  return inputs.size() > 6 ? nn::mask_rows(layer.found, inputs[6]->shape.h) : 0;
}

}  // namespace

void propose(const nn::Proposals& layer, const std::optional<DrawKey>& key, const Samples& logits, const Samples& codes,
             const HostBatch& of, Samples& y) {
  const AnchorSet anchors = anchors_of(layer);
  for (int i = 0; i < y.n; ++i) {
    const Heads<const float> heads{head_of(logits, i), head_of(codes, i)};
    const std::vector<Region> regions =
        key ? propose_for_training(layer, anchors, objects_of(of, i), heads, draw_of(*key, i))
            : propose(layer, anchors, objects_of(of, i), heads);
    write_regions(regions, head_of(y, i));
  }
}

void align_regions(const nn::RegionAlign& layer, const Samples& x, const Samples& regions, Samples& y) {
  const RegionAligner aligner(layer);
  std::vector<Tap> taps(static_cast<std::size_t>(aligner.points() * kTaps));
  for (int i = 0; i < y.n; ++i) {
    const std::vector<Region> all = regions_of(regions, i);
    for (std::int64_t r = 0; r < std::ssize(all); ++r) {
      aligner.taps_of(all[static_cast<std::size_t>(r)].box, taps);
      for (int c = 0; c < x.shape.c; ++c) {
        const float* const from = x.sample(i) + c * x.pixels();
        for (int point = 0; point < aligner.points(); ++point) {
          double sum = 0;
          for (const Tap& tap : std::span(taps).subspan(static_cast<std::size_t>(point) * kTaps, kTaps)) {
            sum += static_cast<double>(tap.weight) * from[tap.pixel];
          }
          const auto value = static_cast<float>(sum);
          if (layer.apart) {
            y.sample(i)[c * y.pixels() + aligner.pixel_apart(r, point)] = value;
          } else {
            y.sample(i)[(c * aligner.points() + point) * y.pixels() + r] = value;
          }
        }
      }
    }
  }
}

void align_regions_backward(const nn::RegionAlign& layer, const Samples& regions, const Samples& dy, Samples& dx) {
  const RegionAligner aligner(layer);
  std::vector<Tap> taps(static_cast<std::size_t>(aligner.points() * kTaps));
  for (int i = 0; i < dy.n; ++i) {
    const std::vector<Region> all = regions_of(regions, i);
    for (std::int64_t r = 0; r < std::ssize(all); ++r) {
      aligner.taps_of(all[static_cast<std::size_t>(r)].box, taps);
      for (int c = 0; c < dx.shape.c; ++c) {
        float* const to = dx.sample(i) + c * dx.pixels();
        for (int point = 0; point < aligner.points(); ++point) {
          const float slope = layer.apart ? dy.sample(i)[c * dy.pixels() + aligner.pixel_apart(r, point)]
                                          : dy.sample(i)[(c * aligner.points() + point) * dy.pixels() + r];
          for (const Tap& tap : std::span(taps).subspan(static_cast<std::size_t>(point) * kTaps, kTaps)) {
            to[tap.pixel] += tap.weight * slope;
          }
        }
      }
    }
  }
}

// The same forward and backward: what lies between regions is 0 or comes to nothing.
void keep_regions(const nn::KeepRegions& layer, const Samples& x, Samples& y) {
  for (int i = 0; i < x.n; ++i) {
    for (int c = 0; c < x.shape.c; ++c) {
      for (int h = 0; h < x.shape.h; ++h) {
        if (h % (layer.size + 1) == layer.size) continue;
        for (int w = 0; w < x.shape.w; ++w) y.at(i, c, h, w) += x.at(i, c, h, w);
      }
    }
  }
}

void find_regions(const nn::FoundRegions& layer, bool training, const RegionInputs& inputs, const HostBatch& of,
                  Samples& y) {
  for (int i = 0; i < y.n; ++i) {
    const std::vector<Region> all = regions_of(*inputs[0], i);
    const Heads<const float> heads{head_of(*inputs[1], i), head_of(*inputs[2], i)};
    write_regions(training ? object_regions(layer, all) : find_regions(layer, all, objects_of(of, i), heads),
                  head_of(y, i));
  }
}

StepMetrics region_metrics(const nn::RegionLoss& layer, const DrawKey& key, const RegionInputs& inputs,
                           const HostBatch& of) {
  const AnchorSet anchors = anchors_of(layer);
  StepMetrics metrics;
  metrics.count = inputs[0]->n;
  for (int i = 0; i < inputs[0]->n; ++i) {
    const std::vector<Region> all = regions_of(*inputs[2], i), found = regions_of(*inputs[5], i);
    const RegionLosses loss = region_loss(layer, anchors, objects_of(of, i), heads_of(inputs, i),
                                          {all, found, rows_of_masks(layer, inputs)}, draw_of(key, i), {});
    for (std::size_t part = 0; part < loss.parts().size(); ++part) metrics.parts[part] += loss.parts()[part];
    metrics.loss_sum += loss.sum();
  }
  return metrics;
}

void region_loss_backward(const nn::RegionLoss& layer, const DrawKey& key, const RegionInputs& inputs,
                          const HostBatch& of, const std::vector<Samples*>& gradients) {
  const AnchorSet anchors = anchors_of(layer);
  for (int i = 0; i < inputs[0]->n; ++i) {
    const std::vector<Region> all = regions_of(*inputs[2], i), found = regions_of(*inputs[5], i);
    RegionHeads<float> slopes{{head_of(*gradients[0], i), head_of(*gradients[1], i)},
                              {head_of(*gradients[3], i), head_of(*gradients[4], i)},
                              {}};
    if (gradients.size() > 6) slopes.masks = head_of(*gradients[6], i);
    region_loss(layer, anchors, objects_of(of, i), heads_of(inputs, i), {all, found, rows_of_masks(layer, inputs)},
                draw_of(key, i), slopes);
  }
}

void found_objects(const nn::RegionLoss& layer, const RegionInputs& inputs, std::span<float> results) {
  const auto size = static_cast<std::size_t>(layer.found.result_size());
  for (int i = 0; i < inputs[0]->n; ++i) {
    write_results(layer.found, regions_of(*inputs[5], i), heads_of(inputs, i).masks, rows_of_masks(layer, inputs),
                  results.subspan(static_cast<std::size_t>(i) * size, size));
  }
}

}  // namespace dtrain::backend::reference

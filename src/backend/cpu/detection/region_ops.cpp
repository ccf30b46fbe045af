#include "region_ops.hpp"

#include <array>

#include "../../detection/region_loss.hpp"
#include "picture_heads.hpp"

namespace dtrain::backend::cpu {
namespace {

RegionDraw draw_of(const Context& c, int node, int sample) {
  return {c.key, node, c.shard.sample_ids[c.first + sample]};
}

// Values of regions are float32.
HeadValues<float> region_rows(const Context& c, TensorId id, int sample) {
  return {static_cast<float*>(c.sample(id, sample)), nn::kRegion, 1};
}

// What nn::RegionLoss reads of one picture, or the gradients by it, as floats. A detector of boxes alone has no masks.
class WideRegionHeads {
 public:
  WideRegionHeads(const Context& c, const RegionTensors& tensors)
      : anchors_(c, tensors.anchors), regions_(c, tensors.regions), has_masks_(tensors.masks != kNoTensor) {
    if (has_masks_) masks_ = WideHead(c, tensors.masks);
  }
  void read(const Context& c, const RegionTensors& from, int sample) {
    anchors_.read(c, from.anchors, sample);
    regions_.read(c, from.regions, sample);
    if (has_masks_) masks_.read(c, from.masks, *from.of_masks, sample);
  }
  void clear() {
    anchors_.clear();
    regions_.clear();
    masks_.clear();
  }
  void write(const Context& c, const RegionTensors& to, int sample) const {
    anchors_.write(c, to.anchors, sample);
    regions_.write(c, to.regions, sample);
    if (has_masks_) masks_.write(c, to.masks, *to.of_masks, sample);
  }
  RegionHeads<const float> values() const { return {anchors_.values(), regions_.values(), masks_.values()}; }
  RegionHeads<float> values() { return {anchors_.values(), regions_.values(), masks_.values()}; }

 private:
  WideHeads anchors_, regions_;
  WideHead masks_;
  bool has_masks_;
};

class ProposalsOp final : public ChunkOp {
 public:
  ProposalsOp(const nn::Proposals& layer, int node, bool training, const HeadTensors& heads, TensorId output)
      : layer_(layer), anchors_(anchors_of(layer)), node_(node), training_(training), heads_(heads), output_(output) {
    kind = "proposals";
    reads = {heads.classes, heads.boxes};
    writes = {output};
  }
  void run(Context& c) override {
    WideHeads heads(c, heads_);
    for (int i = 0; i < c.count; ++i) {
      heads.read(c, heads_, i);
      const nn::PictureObjects* const objects = objects_of(c, i);
      const Heads<const float> values = std::as_const(heads).values();
      const std::vector<Region> regions =
          training_ ? propose_for_training(layer_, anchors_, objects, values, draw_of(c, node_, i))
                    : propose(layer_, anchors_, objects, values);
      write_regions(regions, region_rows(c, output_, i));
    }
  }

 private:
  nn::Proposals layer_;
  AnchorSet anchors_;
  int node_;
  bool training_;
  HeadTensors heads_;
  TensorId output_;
};

class FoundRegionsOp final : public ChunkOp {
 public:
  FoundRegionsOp(const nn::FoundRegions& layer, bool training, TensorId regions, const HeadTensors& heads,
                 TensorId output)
      : layer_(layer), training_(training), regions_(regions), heads_(heads), output_(output) {
    kind = "found_regions";
    reads = {regions, heads.classes, heads.boxes};
    writes = {output};
  }
  void run(Context& c) override {
    WideHeads heads(c, heads_);
    for (int i = 0; i < c.count; ++i) {
      const std::vector<Region> regions = regions_of(c, regions_, i);
      if (!training_) heads.read(c, heads_, i);
      write_regions(training_ ? object_regions(layer_, regions)
                              : find_regions(layer_, regions, objects_of(c, i), std::as_const(heads).values()),
                    region_rows(c, output_, i));
    }
  }

 private:
  nn::FoundRegions layer_;
  bool training_;
  TensorId regions_;
  HeadTensors heads_;
  TensorId output_;
};

class RegionLossOp final : public LoopOp {
 public:
  RegionLossOp(const nn::RegionLoss& layer, int node, std::int64_t first_metric, const RegionTensors& heads,
               const RegionTensors& slopes)
      : layer_(layer),
        anchors_(anchors_of(layer)),
        node_(node),
        first_metric_(first_metric),
        heads_(heads),
        gradients_(slopes) {
    kind = "region_loss";
    reads = {heads.all,           heads.found,           heads.anchors.classes,
             heads.anchors.boxes, heads.regions.classes, heads.regions.boxes};
    writes = {slopes.anchors.classes, slopes.anchors.boxes, slopes.regions.classes, slopes.regions.boxes};
    if (has_masks()) {
      reads.push_back(heads.masks);
      writes.push_back(slopes.masks);
    }
  }
  std::size_t workspace_bytes() const override { return sizeof(RegionLosses); }
  void begin(Context& c) override { *workspace<RegionLosses>(c) = {}; }
  void run(Context& c) override {
    WideRegionHeads heads(c, heads_), slopes(c, gradients_);
    RegionLosses& total = *workspace<RegionLosses>(c);
    for (int i = 0; i < c.count; ++i) {
      heads.read(c, heads_, i);
      slopes.clear();
      const std::vector<Region> all = regions_of(c, heads_.all, i), found = regions_of(c, heads_.found, i);
      total += region_loss(layer_, anchors_, objects_of(c, i), std::as_const(heads).values(),
                           {all, found, mask_rows(c)}, draw_of(c, node_, i), slopes.values());
      slopes.write(c, gradients_, i);
    }
  }
  void finish(Context&) override {}
  bool meets() const override { return true; }
  void meet(std::span<Context> threads) override {
    RegionLosses total;
    for (Context& thread : threads) total += *workspace<RegionLosses>(thread);
    const Context& c = threads.front();
    float* const metrics = c.contribution + first_metric_;
    const std::array<double, 5> parts = total.parts();
    const std::size_t reported = has_masks() ? parts.size() : parts.size() - 1;
    for (std::size_t part = 0; part < reported; ++part) {
      metrics[ContributionLayout::counts + static_cast<std::int64_t>(part)] = static_cast<float>(parts[part]);
    }
    metrics[0] = static_cast<float>(total.sum());
    metrics[1] = metrics[2] = 0;
    metrics[3] = static_cast<float>(c.shard.n);
  }

 private:
  bool has_masks() const { return heads_.masks != kNoTensor; }
  int mask_rows(const Context& c) const {
    return has_masks() ? nn::mask_rows(layer_.found, c.shape(heads_.masks).h) : 0;
  }
  nn::RegionLoss layer_;
  AnchorSet anchors_;
  int node_;
  std::int64_t first_metric_;
  RegionTensors heads_, gradients_;
};

class RegionResultsOp final : public ChunkOp {
 public:
  RegionResultsOp(const nn::Detections& found, const RegionTensors& heads) : found_(found), heads_(heads) {
    kind = "region_results";
    reads = {heads.found};
    if (heads.masks != kNoTensor) reads.push_back(heads.masks);
  }
  void run(Context& c) override {
    WideHead masks;
    const bool has_masks = heads_.masks != kNoTensor;
    if (has_masks) masks = WideHead(c, heads_.masks);
    const int rows = has_masks ? nn::mask_rows(found_, c.shape(heads_.masks).h) : 0;
    const std::int64_t size = found_.result_size();
    for (int i = 0; i < c.count; ++i) {
      if (has_masks) masks.read(c, heads_.masks, *heads_.of_masks, i);
      write_results(found_, regions_of(c, heads_.found, i), std::as_const(masks).values(), rows,
                    {c.logits + (c.first + i) * size, static_cast<std::size_t>(size)});
    }
  }

 private:
  nn::Detections found_;
  RegionTensors heads_;
};

}  // namespace

std::unique_ptr<Op> make_proposals(const nn::Proposals& layer, int node, bool training, const HeadTensors& heads,
                                   TensorId output) {
  return std::make_unique<ProposalsOp>(layer, node, training, heads, output);
}
std::unique_ptr<Op> make_found_regions(const nn::FoundRegions& layer, bool training, TensorId regions,
                                       const HeadTensors& heads, TensorId output) {
  return std::make_unique<FoundRegionsOp>(layer, training, regions, heads, output);
}
std::unique_ptr<Op> make_region_loss(const nn::RegionLoss& layer, int node, std::int64_t first_metric,
                                     const RegionTensors& heads, const RegionTensors& slopes) {
  return std::make_unique<RegionLossOp>(layer, node, first_metric, heads, slopes);
}
std::unique_ptr<Op> make_region_results(const nn::Detections& found, const RegionTensors& heads) {
  return std::make_unique<RegionResultsOp>(found, heads);
}

}  // namespace dtrain::backend::cpu

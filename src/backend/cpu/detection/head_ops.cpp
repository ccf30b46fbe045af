#include "picture_heads.hpp"

namespace dtrain::backend::cpu {
namespace {

class DetectionLossOp final : public LoopOp {
 public:
  DetectionLossOp(const nn::DetectionLoss& layer, std::int64_t first_metric, const HeadTensors& heads,
                  const HeadTensors& slopes)
      : layer_(layer), anchors_(anchors_of(layer)), first_metric_(first_metric), heads_(heads), gradients_(slopes) {
    kind = "detection_loss";
    reads = {heads.classes, heads.boxes};
    writes = {slopes.classes, slopes.boxes};
  }
  std::size_t workspace_bytes() const override { return sizeof(HeadLoss); }
  void begin(Context& c) override { *workspace<HeadLoss>(c) = {}; }
  void run(Context& c) override {
    WideHeads heads(c, heads_), slopes(c, gradients_);
    HeadLoss& total = *workspace<HeadLoss>(c);
    for (int i = 0; i < c.count; ++i) {
      heads.read(c, heads_, i);
      slopes.clear();
      const HeadLoss loss =
          head_loss(layer_, anchors_, objects_of(c, i), std::as_const(heads).values(), slopes.values());
      total.classification += loss.classification;
      total.boxes += loss.boxes;
      slopes.write(c, gradients_, i);
    }
  }
  void finish(Context&) override {}
  bool meets() const override { return true; }
  void meet(std::span<Context> threads) override {
    HeadLoss total;
    for (Context& thread : threads) {
      const HeadLoss& own = *workspace<HeadLoss>(thread);
      total.classification += own.classification;
      total.boxes += own.boxes;
    }
    const Context& c = threads.front();
    float* const metrics = c.contribution + first_metric_;
    metrics[0] = static_cast<float>(total.classification + total.boxes);
    metrics[1] = metrics[2] = 0;
    metrics[3] = static_cast<float>(c.shard.n);
    metrics[ContributionLayout::counts] = static_cast<float>(total.classification);
    metrics[ContributionLayout::counts + 1] = static_cast<float>(total.boxes);
  }

 private:
  nn::DetectionLoss layer_;
  AnchorSet anchors_;
  std::int64_t first_metric_;
  HeadTensors heads_, gradients_;
};

class FindObjects final : public ChunkOp {
 public:
  FindObjects(const nn::DetectionLoss& layer, const HeadTensors& heads)
      : layer_(layer), anchors_(anchors_of(layer)), heads_(heads) {
    kind = "find_objects";
    reads = {heads.classes, heads.boxes};
  }
  void run(Context& c) override {
    WideHeads heads(c, heads_);
    const std::int64_t size = layer_.found.result_size();
    for (int i = 0; i < c.count; ++i) {
      heads.read(c, heads_, i);
      find_objects(layer_, anchors_, objects_of(c, i), std::as_const(heads).values(),
                   {c.logits + (c.first + i) * size, static_cast<std::size_t>(size)});
    }
  }

 private:
  nn::DetectionLoss layer_;
  AnchorSet anchors_;
  HeadTensors heads_;
};

}  // namespace

std::unique_ptr<Op> make_detection_loss(const nn::DetectionLoss& layer, std::int64_t first_metric,
                                        const HeadTensors& heads, const HeadTensors& slopes) {
  return std::make_unique<DetectionLossOp>(layer, first_metric, heads, slopes);
}
std::unique_ptr<Op> make_find_objects(const nn::DetectionLoss& layer, const HeadTensors& heads) {
  return std::make_unique<FindObjects>(layer, heads);
}

}  // namespace dtrain::backend::cpu

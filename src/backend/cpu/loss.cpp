// The end of a program: the loss and its gradient, or the logits for evaluation.
#include <utility>
#include <vector>

#include <dtrain/backend/softmax_loss.hpp>

#include "layers.hpp"

namespace dtrain::backend::cpu {
namespace {

class SoftmaxLossOp final : public LoopOp {
 public:
  SoftmaxLossOp(nn::SoftmaxLoss loss, int top_k, std::int64_t first_metric, const TensorKernels& logit_kernels,
                const TensorKernels& kernels, TensorId logits, TensorId gradient)
      : loss_(std::move(loss)),
        top_k_(top_k),
        first_metric_(first_metric),
        logit_kernels_(logit_kernels),
        kernels_(kernels),
        logits_(logits),
        gradient_(gradient) {
    kind = "softmax_loss";
    reads = {logits};
    writes = {gradient};
  }
  std::size_t workspace_bytes() const override { return 3 * sizeof(double); }
  void begin(Context& c) override {
    for (int k = 0; k < 3; ++k) workspace<double>(c)[k] = 0;
  }
  void run(Context& c) override {
    const int classes = c.shape(logits_).c;
    std::vector<float> gradient(static_cast<std::size_t>(classes)), widened(static_cast<std::size_t>(classes));
    double* const totals = workspace<double>(c);
    for (int i = 0; i < c.count; ++i) {
      logit_kernels_.to_float(c.sample(logits_, i), widened.data(), classes);
      const SampleMetrics m =
          softmax_loss(widened.data(), classes, target_of(c.shard, c.first + i), loss_, top_k_, gradient.data());
      totals[0] += m.loss;
      totals[1] += m.correct;
      totals[2] += m.top_k_correct;
      kernels_.from_float(gradient.data(), c.sample(gradient_, i), classes);
    }
  }
  void finish(Context&) override {}
  bool meets() const override { return true; }
  void meet(std::span<Context> threads) override {
    double totals[3] = {};
    for (Context& thread : threads) {
      for (int k = 0; k < 3; ++k) totals[k] += workspace<double>(thread)[k];
    }
    const Context& c = threads.front();
    for (int k = 0; k < 3; ++k) c.contribution[first_metric_ + k] = static_cast<float>(totals[k]);
    c.contribution[first_metric_ + 3] = static_cast<float>(c.shard.n);
  }

 private:
  nn::SoftmaxLoss loss_;
  int top_k_;
  std::int64_t first_metric_;
  const TensorKernels& logit_kernels_;
  const TensorKernels& kernels_;
  TensorId logits_, gradient_;
};

class StoreLogits final : public ChunkOp {
 public:
  StoreLogits(const TensorKernels& kernels, TensorId logits) : kernels_(kernels), logits_(logits) {
    kind = "logits";
    reads = {logits};
  }
  void run(Context& c) override {
    const std::int64_t classes = c.shape(logits_).size();
    kernels_.to_float(c.data(logits_), c.logits + c.first * classes, c.count * classes);
  }

 private:
  const TensorKernels& kernels_;
  TensorId logits_;
};

}  // namespace

std::unique_ptr<Op> make_softmax_loss(const nn::SoftmaxLoss& loss, int top_k, std::int64_t first_metric,
                                      const TensorKernels& logit_kernels, const TensorKernels& kernels, TensorId logits,
                                      TensorId gradient) {
  return std::make_unique<SoftmaxLossOp>(loss, top_k, first_metric, logit_kernels, kernels, logits, gradient);
}
std::unique_ptr<Op> make_store_logits(const TensorKernels& logit_kernels, TensorId logits) {
  return std::make_unique<StoreLogits>(logit_kernels, logits);
}

}  // namespace dtrain::backend::cpu

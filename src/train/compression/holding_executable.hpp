// An executable whose state includes what compressed gradients hold back (train/gradient_compression.hpp): one more
// flat buffer behind the optimizer's, so that checkpoints, hashes and transfers to newcomers have it too.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <dtrain/backend/backend.hpp>

namespace dtrain::train {

// Trainer's thread only. Everything else is done by the inner executable, which must outlive this and whose state is
// the same without that buffer.
class HoldingExecutable final : public backend::Executable {
 public:
  HoldingExecutable(backend::Executable& inner, std::int64_t gradients)
      : inner_(inner), held_back_(static_cast<std::size_t>(gradients)) {}

  std::span<const float> held_back() const { return held_back_; }
  void hold_back(std::vector<float> gradients);  // between two steps

  const backend::ModelState& state() const override;
  std::int64_t state_size() const override { return inner_.state_size() + std::ssize(held_back_); }
  std::vector<float> state_floats(FloatRange range) const override;
  void write_state(backend::ModelState state) override;
  std::uint64_t planned_bytes() const override;

  std::uint64_t stage(const backend::HostBatch& batch) override { return inner_.stage(batch); }
  std::vector<FloatRange> device_parts() const override { return inner_.device_parts(); }
  void enqueue(const backend::HostBatch& batch, std::span<const backend::ShardRange> shards,
               const backend::StepKey& key, backend::StepSink sink) override {
    inner_.enqueue(batch, shards, key, sink);
  }
  void synchronize() override { inner_.synchronize(); }
  backend::StepMetrics set_sum(backend::StepSum sum) override { return inner_.set_sum(sum); }
  std::optional<double> gradient_norm() override { return inner_.gradient_norm(); }
  using backend::Executable::apply;
  void apply(const backend::Update& update) override;
  using backend::Executable::evaluate;
  backend::StepMetrics evaluate(const backend::HostBatch& batch, std::span<const nn::ImageView> views,
                                std::span<float> logits) override {
    return inner_.evaluate(batch, views, logits);
  }
  backend::StateNumbers state_numbers() const override { return inner_.state_numbers(); }
  void exchange_average() override;
  backend::Profile profile(const backend::HostBatch& batch, int repeats) override {
    return inner_.profile(batch, repeats);
  }
  Json execution() const override { return inner_.execution(); }
  std::vector<std::string> take_warnings() override { return inner_.take_warnings(); }

 private:
  backend::Executable& inner_;
  std::vector<float> held_back_;
  mutable std::optional<backend::ModelState> state_;  // the whole, from when it is asked for until it changes
};

}  // namespace dtrain::train

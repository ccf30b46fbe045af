// A communicator that the trainer owns and the session can still abort.
#pragma once

#include <memory>
#include <utility>

#include <dtrain/comm/communicator.hpp>

namespace dtrain::elastic {

class SharedCommunicator final : public comm::Communicator {
 public:
  explicit SharedCommunicator(std::shared_ptr<comm::Communicator> inner) : inner_(std::move(inner)) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::unique_ptr<comm::Reduction> begin_reduction(const comm::ReductionShape& shape, const comm::Note& note) override {
    return inner_->begin_reduction(shape, note);
  }
  std::unique_ptr<comm::DeviceReduction> begin_device_reduction(const comm::ReductionShape& shape,
                                                                const std::vector<FloatRange>& parts,
                                                                const comm::Note& note) override {
    return inner_->begin_device_reduction(shape, parts, note);
  }
  void recycle(comm::FloatBuffer sum) override { inner_->recycle(std::move(sum)); }
  std::vector<std::string> all_gather(ByteView mine) override { return inner_->all_gather(mine); }
  void send(int to, ByteView bytes) override { inner_->send(to, bytes); }
  void receive(int from, std::span<std::byte> bytes) override { inner_->receive(from, bytes); }
  void abort() noexcept override { inner_->abort(); }

 private:
  std::shared_ptr<comm::Communicator> inner_;
};

}  // namespace dtrain::elastic

// Where the floats of a reduction are on a rank's GPU, and what is done with them there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include <dtrain/base/accelerator.hpp>

#include "nccl/exchange_plan.hpp"
#include "nccl/link.hpp"

namespace dtrain::comm::nccl {

class DeviceFloats {
 public:
  DeviceFloats(Accelerator& device, std::uint64_t bytes) : device_(device), data_(device.allocate(bytes)) {}
  ~DeviceFloats() { device_.release(data_); }
  DeviceFloats(const DeviceFloats&) = delete;
  float* floats() const { return reinterpret_cast<float*>(data_); }
  bfloat16_bits* halves() const { return reinterpret_cast<bfloat16_bits*>(data_); }

 private:
  Accelerator& device_;
  std::byte* data_;
};

// The memory of one shape of reductions, used again by each of them. All work is asked for and not waited for.
class DeviceSums {
 public:
  // `device` and `plan` must outlive this.
  DeviceSums(Accelerator& device, const MergePlan& merge, const ExchangePlan& plan, int rank);

  // Bucket values of a piece of this rank: `first` is the position of the first one in the contribution.
  void upload(int node, std::int64_t first, const float* values, std::int64_t size);
  void exchange_pieces(Link& link, Clock::time_point deadline);
  void add_up();
  void exchange_sums(Link& link, Clock::time_point deadline);
  void download(float* sum);  // waits for all of it

 private:
  // Floats of one part, and what travels in their place where they are rounded.
  struct Values {
    std::unique_ptr<DeviceFloats> floats, narrow;
    std::int64_t first = 0;  // position in the contribution
    float* at(std::int64_t position) const { return floats->floats() + (position - first); }
    bfloat16_bits* narrow_at(std::int64_t position) const { return narrow->halves() + (position - first); }
  };
  struct Key {
    int part, node;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  Values allocate(const Bucket& part, Chunk chunk);
  const Bucket& part(int index) const { return plan_.parts[static_cast<std::size_t>(index)]; }
  const Chunk& own(int index) const { return plan_.own[static_cast<std::size_t>(index)]; }
  Values& values(const Transfer& transfer) {
    return transfer.node < 0 ? sums_[static_cast<std::size_t>(transfer.part)]
                             : nodes_.at({transfer.part, transfer.node});
  }
  void narrow_before(const std::vector<Transfer>& sends);
  void widen_after(const std::vector<Transfer>& receptions);
  void transfer(Link& link, const std::vector<Transfer>& sends, const std::vector<Transfer>& receptions,
                Clock::time_point deadline);

  Accelerator& device_;
  const ExchangePlan& plan_;
  std::map<Key, Values> nodes_;  // pieces: whole parts of this rank's, chunks of others'
  std::vector<Values> sums_;     // [part]
};

}  // namespace dtrain::comm::nccl

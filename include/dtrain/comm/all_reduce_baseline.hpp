// All-reduce of other libraries, the baseline of `dtrain bench allreduce`. Training does not use it: its bits depend on
// the number of ranks.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dtrain/comm/communicator.hpp>

namespace dtrain::comm {

class AllReduceBaseline {
 public:
  virtual ~AllReduceBaseline() = default;
  // Sums `values` over all ranks, in place, by the algorithm of this name; the first time, all ranks connect for it.
  // Throws PeerLost.
  virtual void all_reduce(const std::string& algorithm) = 0;
};

// All algorithms but the older bcube, whose sums are wrong for 3, 5, 6 and 7 ranks.
std::vector<std::string> gloo_algorithms();

// Gloo meshes on `address` (numeric, of this machine), whose ranks meet over `mesh`. It and `values`, the same number
// on all ranks, must outlive them.
std::unique_ptr<AllReduceBaseline> make_gloo_baseline(Communicator& mesh, const std::string& address,
                                                      std::span<float> values);

}  // namespace dtrain::comm

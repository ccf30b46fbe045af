// The regions that `cluster up` tries one after the other, and what it would do in each of them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/cluster/cluster_cloud.hpp"

namespace dtrain::cli {

// The cluster as it would be made, or completed, in one region.
struct Candidate {
  std::unique_ptr<ClusterCloud> cloud;
  cluster::Fleet fleet{};
  cluster::Fleet left{};  // what is there, and is to be removed first: then `fleet` is empty
  cluster::ClusterRequest request{};
  cluster::Account account{};
  cluster::Plan plan{};
  const std::string& region() const { return account.region; }
};

// What the user asks for.
struct Asked {
  const config::ClusterPlace& place;
  const cluster::Spec& spec;
  const config::OptionSet& set;
};

struct RegionOrder {
  cluster::Spec spec{};                                         // wanted in all of them
  std::vector<Candidate> tried{};                               // in this order; never empty
  std::vector<std::pair<std::string, std::string>> left_out{};  // regions that cannot have the cluster, and why
  std::vector<std::string> to_clear{};                          // regions with what an interrupted `up` left
  bool is_one() const { return tried.size() + left_out.size() + to_clear.size() == 1; }
};

// Reads all of the regions that `asked` names; changes nothing. A region that has the cluster is the only one. Throws
// UsageError for what binds the cluster to one of several regions, and where none can have it.
RegionOrder order_regions(const Asked& asked, Reporter& reporter);

// The price of the dearest region, as far as prices are known.
cluster::Cost highest_cost(const RegionOrder& order);
// "[{region, dollars_per_hour, unpriced, why_not}, ...]", and the same as lines for people.
Json regions_json(const RegionOrder& order);
void answer_regions(const RegionOrder& order, Reporter& reporter);

// Removes what an interrupted `up` left; calls `make` for one region after the other until one has the capacity, and
// returns what it returned. What a region was left with is removed before the next one is tried. Throws NoCapacity
// where no region has it.
cluster::UpResult make_in_order(RegionOrder& order, const Asked& asked, Reporter& reporter,
                                const std::function<cluster::UpResult(Candidate&)>& make);

}  // namespace dtrain::cli

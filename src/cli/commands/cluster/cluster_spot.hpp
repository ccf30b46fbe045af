// What is said of spot prices, beside those on demand.
#pragma once

#include <dtrain/base/reporter.hpp>
#include <dtrain/cluster/spot.hpp>

#include "board/forecast.hpp"
#include "keep/cluster_regions.hpp"

namespace dtrain::cli {

struct SpotCost {
  std::vector<cluster::Machine> machines{};  // all of the cluster
  cluster::SpotPrices prices{};
  cluster::PriceList on_demand{};

  bool any() const;  // some machine is spot; else prices were not asked for
  cluster::Cost cost() const { return cluster::cost_of(machines, prices, on_demand); }
};
// Asks EC2 where a machine is spot.
SpotCost read_spot_cost(net::AwsCalls& aws, std::vector<cluster::Machine> machines,
                        const cluster::PriceList& on_demand);

// null: no machine is spot.
Json spot_json(const SpotCost& spot);
void answer_spot(const SpotCost& spot, Reporter& reporter);

// The end of `plan`, as a document or as lines: what is done in the first region, and which others come after it.
// `forecast`: of a training on these machines; nullopt: none was asked for.
void answer_plan_with_spot(const RegionOrder& order, const std::optional<board::Forecast>& forecast,
                           Reporter& reporter);

}  // namespace dtrain::cli

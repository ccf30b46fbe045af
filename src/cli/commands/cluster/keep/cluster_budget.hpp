// `--budget`, and what is said of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/reporter.hpp>
#include <dtrain/cluster/budget.hpp>

#include "cli/commands/cluster/cluster_cloud.hpp"

namespace dtrain::cli {

inline constexpr const char* kBudget = "budget";
void bind_budget(config::OptionSet& set, double& dollars, const std::string& help);

struct BudgetView {
  std::optional<double> budget{};  // US dollars; nullopt: no limit
  cluster::Spending spending{};    // until now
  cluster::Cost hourly{};          // of the machines that run
  cluster::SpotPrices spot{};      // of all types of spot machines, including machines that ended

  bool is_known() const { return spending.unpriced.empty() && hourly.unpriced.empty(); }
};
// The budget in the tags, and what the machines have cost. Asks EC2 for spot prices where a machine is spot. Throws
// DataError for tags that dtrain does not write.
BudgetView read_budget(ClusterCloud& cloud, const cluster::Fleet& fleet);
[[noreturn]] void refuse_budget_on_emr();
// Throws UsageError if nothing may be started: the budget is spent, or the price of a type that ran or of one of
// `types`, which are to run, is unknown. Warns where the prices are those of another region.
void require_budget(const BudgetView& view, const std::vector<std::string>& types, ClusterCloud& cloud,
                    const cluster::Fleet& fleet);

Json budget_json(const BudgetView& view);  // null: there is no budget
// "$4.10 of the budget of $50.00 are spent; $45.90 are left, for about 15.2 h"
std::string budget_line(const BudgetView& view);

}  // namespace dtrain::cli

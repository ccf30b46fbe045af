#include "cli/command.hpp"
#include "cluster_spot.hpp"
#include "forecast_view.hpp"
#include "keep/cluster_regions.hpp"

namespace dtrain::cli {
namespace {

struct PlanCommand {
  config::ClusterPlace place;
  cluster::Spec spec;
  std::optional<Path> measured;
};

void bind(config::OptionSet& set, PlanCommand& options) {
  config::bind_cluster(set, options.place);
  bind(set, options.spec);
  set.group("Forecast");
  set.add(
         "--forecast", options.measured,
         "also say how long a whole training takes and what it costs: one whose records are in this folder (its "
         "--job-dir, or PREFIX-run), and that was measured on machines which together are as fast as those of the plan")
      .flag_only = true;
}

ExitCode act(const PlanCommand& options, const config::OptionSet& set, Reporter& reporter) {
  cluster::check_values(options.spec);
  const auto forecast = options.measured ? std::optional(forecast_in(*options.measured)) : std::nullopt;
  const RegionOrder order = order_regions({options.place, options.spec, set}, reporter);
  answer_plan_with_spot(order, forecast, reporter);
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_cluster_plan() {
  auto command =
      make_command<PlanCommand>("cluster plan", "show what `cluster up` would create and what it would cost", act);
  command->first_options = {"workers", "instance-type", "spot", "shared"};
  command->examples = {"dtrain cluster plan demo -w 2 --instance-type c5.2xlarge",
                       "dtrain cluster plan demo -w 2 --forecast job"};
  command->see_also = {"cluster up", "cluster status"};
  return command;
}

}  // namespace dtrain::cli

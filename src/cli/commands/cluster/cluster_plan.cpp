#include "cli/command.hpp"
#include "cluster_cloud.hpp"
#include "cluster_spot.hpp"
#include "forecast_view.hpp"

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
  const auto forecast = options.measured ? std::optional(forecast_in(*options.measured)) : std::nullopt;
  ClusterCloud cloud(options.place, reporter);
  const cluster::Fleet fleet = cluster::read_fleet(cloud.aws(), options.place.name);
  const cluster::Spec spec = spec_of_up(options.spec, set, fleet, reporter);
  const cluster::ClusterRequest request = cluster_request(options.place.name, spec, set, fleet);
  cluster::check_spec(request.spec);
  const cluster::Account account = cluster::read_account(cloud.aws(), request.spec, request.name);
  cluster::check_request(request, account);
  const cluster::Plan plan = cluster::plan_up(request.spec, request.options, account, fleet);
  answer_plan_with_spot(cloud.aws(), request, account, plan, fleet, forecast, reporter);
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

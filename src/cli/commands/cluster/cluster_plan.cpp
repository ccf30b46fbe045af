#include "cli/command.hpp"
#include "cluster_cloud.hpp"
#include "cluster_spot.hpp"

namespace dtrain::cli {
namespace {

struct PlanCommand {
  config::ClusterPlace place;
  cluster::Spec spec;
};

void bind(config::OptionSet& set, PlanCommand& options) {
  config::bind_cluster(set, options.place);
  bind(set, options.spec);
}

ExitCode act(const PlanCommand& options, const config::OptionSet& set, Reporter& reporter) {
  ClusterCloud cloud(options.place, reporter);
  const cluster::Fleet fleet = cluster::read_fleet(cloud.aws(), options.place.name);
  const cluster::Spec spec = spec_of_up(options.spec, set, fleet, reporter);
  const cluster::ClusterRequest request = cluster_request(options.place.name, spec, set, fleet);
  cluster::check_spec(request.spec);
  const cluster::Account account = cluster::read_account(cloud.aws(), request.spec, request.name);
  cluster::check_request(request, account);
  const cluster::Plan plan = cluster::plan_up(request.spec, request.options, account, fleet);
  answer_plan_with_spot(cloud.aws(), request, account, plan, fleet, reporter);
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_cluster_plan() {
  auto command =
      make_command<PlanCommand>("cluster plan", "show what `cluster up` would create and what it would cost", act);
  command->first_options = {"workers", "instance-type", "spot", "shared"};
  command->examples = {"dtrain cluster plan demo -w 2 --instance-type c5.2xlarge"};
  command->see_also = {"cluster up", "cluster status"};
  return command;
}

}  // namespace dtrain::cli

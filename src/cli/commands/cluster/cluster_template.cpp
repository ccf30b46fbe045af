#include <dtrain/base/error.hpp>
#include <dtrain/cluster/cloud_formation.hpp>

#include "cli/command.hpp"
#include "cluster_cloud.hpp"

namespace dtrain::cli {
namespace {

struct TemplateCommand {
  config::ClusterPlace place;
  cluster::Spec spec;
};

void bind(config::OptionSet& set, TemplateCommand& options) {
  config::bind_cluster(set, options.place);
  bind(set, options.spec);
}

ExitCode act(const TemplateCommand& options, const config::OptionSet& set, Reporter& reporter) {
  ClusterCloud cloud(options.place, reporter);
  const cluster::Fleet fleet = cluster::read_fleet(cloud.aws(), options.place.name);
  const cluster::Wish wish = wish_of(options.place.name, options.spec, set, fleet);
  cluster::check_spec(wish.spec);
  if (wish.spec.on == "emr") throw UsageError("a template makes instances, not a cluster of emr", "leave --on out");
  const cluster::Account account = cluster::read_account(cloud.aws(), wish.spec, wish.name);
  constexpr int kIndent = 2;
  const Json document = cluster::cloud_formation_template(wish, account);
  reporter.answer(reporter.json() ? document.dump() : document.dump(kIndent));
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_cluster_template() {
  auto command = make_command<TemplateCommand>("cluster template",
                                               "print the cluster as a CloudFormation template, for review", act);
  command->examples = {"dtrain cluster template demo -w 2 --instance-type c5.2xlarge"};
  command->see_also = {"cluster plan", "cluster up"};
  return command;
}

}  // namespace dtrain::cli

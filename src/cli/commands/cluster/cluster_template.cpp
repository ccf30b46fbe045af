#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/cloud_formation.hpp>
#include <dtrain/cluster/plan.hpp>

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
  cluster::check_values(options.spec);
  ClusterCloud cloud(options.place, reporter);
  const cluster::Fleet fleet = cluster::read_fleet(cloud.aws(), options.place.name);
  const cluster::ClusterRequest request = cluster_request(options.place.name, options.spec, set, fleet);
  cluster::check_spec(request.spec);
  if (request.spec.on == cluster::Service::emr)
    throw UsageError("cluster template: --on emr is not supported, because templates describe EC2 instances",
                     "leave out --on");
  if (!request.spec.weights.empty()) {
    throw UsageError("cluster template: CloudFormation counts machines, so --instance-type takes no weights",
                     "leave the ':N' out, and give --workers as machines");
  }
  const cluster::Account account = cluster::read_account(cloud.aws(), request.spec, request.name);
  cluster::refuse_gpus_that_do_not_train(request.spec, account);
  constexpr int kIndent = 2;
  const Json document = cluster::cloud_formation_template(request, account);
  const std::string compact = document.dump(), readable = document.dump(kIndent);
  if (request.spec.instance_types.size() > 1) {
    reporter.warn(fmt::format("CloudFormation does not fall back: of --instance-type, only {} is in the template",
                              request.spec.instance_types.front()));
  }
  const bool is_short = readable.size() <= cluster::kMostDirectBytes;
  const std::string& text = reporter.json() || !is_short ? compact : readable;
  if (text.size() > cluster::kMostDirectBytes) {
    reporter.warn(
        fmt::format("the template is {} bytes, and CloudFormation takes {} directly: put it in S3, and give "
                    "aws cloudformation create-stack --template-url",
                    text.size(), cluster::kMostDirectBytes));
  }
  reporter.answer(text);
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_cluster_template() {
  auto command = make_command<TemplateCommand>("cluster template",
                                               "print the cluster as a CloudFormation template, for review", act);
  command->first_options = {"workers", "instance-type", "spot", "shared"};
  command->examples = {"dtrain cluster template demo -w 2 --instance-type c5.2xlarge"};
  command->see_also = {"cluster plan", "cluster up"};
  return command;
}

}  // namespace dtrain::cli

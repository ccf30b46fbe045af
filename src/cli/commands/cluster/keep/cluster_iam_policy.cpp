#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include <dtrain/base/text.hpp>
#include <dtrain/cluster/rights.hpp>
#include <dtrain/net/aws.hpp>

#include "cli/command.hpp"
#include "commands.hpp"
#include "config/option_values.hpp"

namespace dtrain::cli {
namespace {

enum class Holder { user, head, worker };
constexpr EnumName<Holder> kHolders[] = {{Holder::user, "user"}, {Holder::head, "head"}, {Holder::worker, "worker"}};

struct PolicyCommand {
  cluster::RightsScope scope;
  Holder holder = Holder::user;
};

void add_names(config::OptionSet& set, const char* flags, std::vector<std::string>& field, const char* value,
               const char* help) {
  config::Option& option = set.add_custom(
      flags, value, help,
      [&field](const std::string& text) {
        field.clear();
        for (const std::string& part : split(text, config::kBetweenRepeated)) {
          for (const std::string& one : split(part, ',')) field.emplace_back(trim(one));
        }
      },
      [&field] { return join(field, ","); });
  option.repeats = option.comma_list = option.flag_only = true;
}

void bind(config::OptionSet& set, PolicyCommand& options) {
  set.group("Policy");
  set.add("NAME", options.scope.cluster, "NAME",
          "cluster to which the rights are limited (default all clusters that dtrain makes)");
  set.add("--region", options.scope.region, "NAME",
          "region to which the rights are limited (default all regions of the partition that AWS_REGION or the profile "
          "names)")
      .flag_only = true;
  config::add_choice(set, "--for", options.holder, kHolders,
                     "holder of the rights: a user of the cluster commands, the head of a cluster (as the role of "
                     "`up --elastic-role` has them), or with --heal a worker, which starts a lost head again")
      .flag_only = true;
  set.add("--permissions-boundary", options.scope.permissions_boundary, "ARN",
          "let the user make the role of a head only with this policy as its permissions boundary (default none)")
      .flag_only = true;
  add_names(
      set, "--pass-role", options.scope.roles, "ARN[,ARN...]",
      "role of the account that the user may give to machines: of --elastic-role PROFILE, or of --service-role and "
      "--instance-profile for EMR (default EMR's usual roles); may be repeated");
  add_names(set, "--bucket", options.scope.buckets, "NAME[,NAME...]",
            "bucket to which the user may send by `cluster prepare-s3` (default none); may be repeated");
  add_names(set, "--kms-key", options.scope.keys, "ARN[,ARN...]",
            "key of `up --kms-key`, with which EBS and EFS may encrypt for the holder (default none); may be repeated");
  set.add("--heal", options.scope.heals,
          "with --for head or worker: the rights in a cluster that repairs itself (`up --heal`)")
      .flag_only = true;
  set.add("--adopt", options.scope.adopts,
          "also the rights of `cluster adopt`, and of `cluster down` for such a cluster: to change the Auto Scaling "
          "groups of the region, and to tag machines")
      .flag_only = true;
}

std::size_t counted_by_aws(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return std::isspace(static_cast<unsigned char>(c)) == 0; }));
}

void refuse_unused(const PolicyCommand& options, const config::OptionSet& set) {
  if (options.holder == Holder::user) {
    if (options.scope.heals) {
      throw UsageError("--heal is for the policy of a head or a worker", "give --for head or worker, or leave it out");
    }
    return;
  }
  if (options.holder == Holder::worker && !options.scope.heals) {
    throw UsageError("a worker has rights only in a cluster that keeps itself", "give --heal too");
  }
  for (const char* name : {"permissions-boundary", "pass-role", "bucket", "adopt"}) {
    if (set.chosen(name)) throw UsageError(fmt::format("--{} is for the policy of a user", name), "leave it out");
  }
}

void advise(const PolicyCommand& options, const std::string& text, Reporter& reporter) {
  if (const std::size_t size = counted_by_aws(text); size > cluster::kMostPolicy) {
    reporter.warn(
        fmt::format("the policy has {} characters, and IAM takes {}: name fewer roles and buckets, in "
                    "policies of their own",
                    size, cluster::kMostPolicy));
  }
  if (options.holder != Holder::user) return;
  if (options.scope.permissions_boundary.empty()) {
    reporter.note(
        "its holder may give the role of a head any rights; --permissions-boundary ARN limits them, for example to a "
        "policy made of `dtrain cluster iam-policy --for head`");
  }
  if (options.scope.buckets.empty()) {
    reporter.note("it holds no right for S3, which `cluster prepare-s3` takes: --bucket NAME adds them for a bucket");
  }
}

// All regions are those of one partition: that of the region which the user's other commands take.
cluster::RightsScope in_partition(cluster::RightsScope scope) {
  if (scope.region.empty()) scope.partition = net::aws_partition(net::chosen_region({}));
  return scope;
}

Json rights_of(Holder holder, const cluster::RightsScope& scope) {
  switch (holder) {
    case Holder::head:
      return cluster::head_rights(scope);
    case Holder::worker:
      return cluster::worker_rights(scope);
    case Holder::user:
      break;
  }
  return cluster::user_rights(scope);
}

ExitCode act(const PolicyCommand& options, const config::OptionSet& set, Reporter& reporter) {
  refuse_unused(options, set);
  cluster::check_scope(options.scope);
  constexpr int kIndentOfPolicy = 2;
  const Json document = rights_of(options.holder, in_partition(options.scope));
  const std::string text = reporter.json() ? document.dump() : document.dump(kIndentOfPolicy);
  advise(options, text, reporter);
  reporter.answer(text);
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_cluster_iam_policy() {
  auto command = make_command<PolicyCommand>(
      "cluster iam-policy", "print the rights that the cluster commands need in an AWS account, as an IAM policy", act);
  command->examples = {"dtrain cluster iam-policy > policy.json",
                       "dtrain cluster iam-policy demo --region eu-west-1 --bucket photos",
                       "dtrain cluster iam-policy --for head", "dtrain cluster iam-policy demo --for worker --heal"};
  command->see_also = {"cluster up", "doctor"};
  return command;
}

}  // namespace dtrain::cli

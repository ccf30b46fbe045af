#include "head_start.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>

#include "aws/ec2_fields.hpp"
#include "aws/resources.hpp"

namespace dtrain::cluster {
namespace {

constexpr std::size_t kHeadTokenSize = 32;
// Heads that were started after the same one, and ended before anybody saw them.
constexpr int kMostHeads = 16;
constexpr const char* kTokenIsUsedUp = "IdempotentInstanceTerminated";

// The head's tags: those of its template, which are those of all resources of the cluster, and its role.
Tags tags_of_head(const Fleet& fleet) {
  Tags tags = fleet.head_template->tags;
  std::erase_if(tags, [](const auto& one) { return one.first.starts_with("aws:"); });
  tags[tag::kRole] = "head";
  tags[tag::kNode] = "head";
  tags[tag::kNodeType] = "Master";
  tags[tag::kName] = shown_name(fleet.name, "head");
  return tags;
}

Tags tags_of_disk(const Fleet& fleet) {
  Tags tags = tags_of_head(fleet);
  for (const char* own : {tag::kRole, tag::kNode, tag::kNodeType, tag::kName}) tags.erase(own);
  return tags;
}

std::string token_of_head(const Fleet& fleet, const std::string& lost, const std::string& type, int trial) {
  const std::string text = fmt::format("{} head after {} {} {}", fleet.group->id, lost, type, trial);
  return sha256_hex(bytes_of(text)).substr(0, kHeadTokenSize);
}

Node run_by_template(net::AwsCalls& aws, const Fleet& fleet, const std::string& type, const std::string& token) {
  Fields fields{{"LaunchTemplate.LaunchTemplateId", fleet.head_template->id},
                {"LaunchTemplate.Version", fleet.head_template->version},
                {"MinCount", "1"},
                {"MaxCount", "1"},
                {"ClientToken", token}};
  if (!type.empty()) fields.emplace_back("InstanceType", type);
  add_tags(fields, "", 1, "instance", tags_of_head(fleet));
  add_tags(fields, "", 2, "volume", tags_of_disk(fleet));
  const auto made = aws.query(net::kEc2, "RunInstances", std::move(fields)).list("instancesSet");
  if (made.empty()) throw DataError("the answer to ec2 RunInstances names no instance");
  aws.created(made.front().value("instanceId"));
  return node_of(made.front());
}

// A token whose machine has ended is used up: the next one is the same for all that find this out. EC2 says so by an
// error, and earlier did by the machine that ended.
Node run_after(net::AwsCalls& aws, const Fleet& fleet, const std::string& type, const std::string& lost) {
  for (int trial = 0;; ++trial) {
    try {
      Node node = run_by_template(aws, fleet, type, token_of_head(fleet, lost, type, trial));
      if (node.there() || trial + 1 >= kMostHeads) return node;
    } catch (const net::AwsError& problem) {
      if (problem.facts().code != kTokenIsUsedUp || trial + 1 >= kMostHeads) throw;
    }
  }
}

}  // namespace

Node start_head_again(net::AwsCalls& aws, const Fleet& fleet, const std::vector<std::string>& types,
                      const std::string& lost, std::vector<Attempt>& attempts) {
  const std::vector<std::string> tried = types.empty() ? std::vector<std::string>{""} : types;
  for (std::size_t at = 0;; ++at) {
    Attempt& attempt = attempts.emplace_back();
    attempt.pool.type = tried[at];
    attempt.wanted = 1;
    try {
      Node node = run_after(aws, fleet, tried[at], lost);
      attempt.got = 1;
      return node;
    } catch (const net::AwsError& problem) {
      attempt.code = problem.facts().code;
      attempt.message = problem.facts().message;
      if (problem.facts().problem != net::AwsProblem::capacity || at + 1 >= tried.size()) throw;
    }
  }
}

}  // namespace dtrain::cluster

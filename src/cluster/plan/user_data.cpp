#include <dtrain/cluster/user_data.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/admission.hpp>
#include <dtrain/net/aws.hpp>
#include <dtrain/net/ssh.hpp>

#include "node_boot.hpp"

namespace dtrain::cluster {
namespace {

constexpr std::string_view kSpecLine = "# spec: ";
constexpr std::size_t kHashDigits = 64;

const char* name_of(NodeBoot::Role role) { return role == NodeBoot::Role::head ? "head" : "worker"; }

const char* name_of(SharedFolder::Kind kind) {
  switch (kind) {
    case SharedFolder::Kind::efs:
      return "efs";
    case SharedFolder::Kind::lustre:
      return "lustre";
    case SharedFolder::Kind::path:
      return "path";
    case SharedFolder::Kind::none:
      break;
  }
  return "none";
}

const char* yes_or_no(bool value) { return value ? "yes" : "no"; }

// The settings of the node's processes; NodeOrder of node_order.hpp reads them.
Json node_order(const NodeBoot& boot) {
  Json order = Json::object({{"schema", "dtrain.node/1"},
                             {"cluster", boot.cluster},
                             {"head", boot.head_address},
                             {"port", kHeadPort},
                             {"admission", boot.admission},
                             {"bundle", boot.bundle_sha256},
                             {"login", boot.login},
                             {"region", boot.region},
                             {"folder", boot.shared.kind == SharedFolder::Kind::none ? "" : boot.shared.folder},
                             {"replace_head_after", boot.replace_head_after.count()}});
  if (boot.adopted) order["adopted"] = true;
  return order;
}

bool is_hex_of_256_bits(const std::string& text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == kHashDigits && std::ranges::all_of(text, is_digit);
}

std::string assignments(const NodeBoot& boot) {
  std::string text;
  const auto give = [&](const char* name, const std::string& value) {
    text += fmt::format("{}={}\n", name, net::shell_quoted(value));
  };
  give("cluster", boot.cluster);
  give("role", name_of(boot.role));
  give("head_only", yes_or_no(boot.head_only));
  give("head", boot.head_address);
  give("port", std::to_string(kHeadPort));
  give("proof", failure_proof(boot.admission));
  give("sha256", boot.bundle_sha256);
  give("login", boot.login);
  give("region", boot.region);
  give("domain", net::aws_domain(boot.region));
  give("shared", name_of(boot.shared.kind));
  give("file_system", boot.shared.file_system);
  give("mount_target", boot.shared.mount_target);
  give("mount_name", boot.shared.mount_name);
  give("folder", boot.shared.folder);
  give("prepare", boot.prepare);
  give("prepare_deadline", std::to_string(boot.prepare_deadline.count()));
  give("boot_deadline", std::to_string(boot.boot_deadline.count()));
  give("time_to_live", std::to_string(boot.time_to_live.count()));
  give("autostop", std::to_string(boot.autostop.count()));
  give("heal", yes_or_no(boot.heal));
  give("guard", yes_or_no(boot.role == NodeBoot::Role::worker && boot.replace_head_after.count() > 0));
  give("keep_failed", yes_or_no(boot.keep_failed));
  give("node_json", node_order(boot).dump());
  return text;
}

}  // namespace

std::string user_data(const NodeBoot& boot) {
  if (!is_hex_of_256_bits(boot.bundle_sha256)) throw UsageError(fmt::format("'{}' is no SHA-256", boot.bundle_sha256));
  if (!is_hex_of_256_bits(boot.admission))
    throw UsageError("the cluster's admission secret is not 64 hexadecimal digits");
  std::string script = fmt::format("#!/bin/sh\n# A node of cluster {}, made by dtrain.\n{}{}\n{}{}", boot.cluster,
                                   kSpecLine, boot.spec.dump(), assignments(boot), kNodeBootScript);
  if (script.size() > kMostUserData) {
    throw UsageError(fmt::format("the user data of cluster {} would be {} bytes, and EC2 takes {}", boot.cluster,
                                 script.size(), kMostUserData),
                     "put what setting 'prepare' runs into a file of the shared folder, and give its path");
  }
  return script;
}

std::optional<Json> spec_in(std::string_view script) {
  while (!script.empty()) {
    const std::string_view line = script.substr(0, script.find('\n'));
    if (line.starts_with(kSpecLine)) return Json::parse(line.substr(kSpecLine.size()), "the cluster's specification");
    script.remove_prefix(std::min(line.size() + 1, script.size()));
  }
  return std::nullopt;
}

}  // namespace dtrain::cluster

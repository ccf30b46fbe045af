#include <dtrain/base/files.hpp>
#include <dtrain/cluster/member.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/cpus.hpp>
#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/error_json.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/base/own_files.hpp>
#include <dtrain/base/text.hpp>

#include "program_check.hpp"

namespace dtrain::cluster {
namespace {

using namespace std::chrono_literals;
constexpr auto kGpuTime = 8s;
constexpr const char* kMembers = ".dtrain/members";

std::int64_t wall_nanoseconds() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

Path home() { return environment("HOME").value_or("/"); }
// Home folders may be shared, so each machine has a file of its own.
Path member_file() { return home() / kMembers / host_name(); }

// A kernel has one boot id; containers on it differ in their network.
std::string machine_id() {
  std::error_code unknown;
  const Path network = std::filesystem::read_symlink("/proc/self/ns/net", unknown);
  return fmt::format("{} {}", trim(read_file("/proc/sys/kernel/random/boot_id")), network.string());
}

// The other cluster that this host belongs to. A cluster that is gone, or has lost the host, does not count: its folder
// says so.
std::optional<std::string> other_cluster(const std::string& folder) {
  if (!is_listed_or_throw(member_file())) return std::nullopt;
  const Json json = Json::parse(read_file(member_file()), member_file().string());
  const std::string& other = json.at("folder").as_string();
  if (other == folder) return std::nullopt;
  const auto cluster = read_cluster(other);
  if (!cluster || cluster->ends) return std::nullopt;
  return fmt::format("{} ({})", cluster->name, other);
}

Json look(const Json& question) {
  const std::int64_t begun = wall_nanoseconds();
  const std::string& folder = question.at("folder").as_string();
  const Path probe = question.at("probe").as_string();
  std::error_code unknown;
  const auto space = std::filesystem::space(probe.parent_path(), unknown);
  const auto other = other_cluster(folder);
  Checkup checkup = look_at_gpus(kGpuTime);
  checkup.disks = look_at_disks();
  Json answer = Json::object({{"machine", machine_id()},
                              {"host_name", host_name()},
                              {"cpus", usable_cpus()},
                              {"memory_bytes", usable_memory().total},
                              {"disk_free_bytes", unknown ? std::uint64_t{0} : std::uint64_t{space.available}},
                              {"other_cluster", other ? Json(*other) : Json()},
                              {"sees_shared", is_listed(probe)},
                              {"report", to_json(checkup)},
                              {"time_ns", begun}});
  answer["took_ns"] = wall_nanoseconds() - begun;
  return answer;
}

Path authorized_keys() {
  const Path file = home() / ".ssh" / "authorized_keys";
  std::error_code none;
  const Path real = std::filesystem::canonical(file, none);
  return none ? file : real;
}

// The lines without this key, and with it at the end where it is to open this host.
void set_key(const std::string& key, bool opens) {
  if (key.empty()) return;
  const Path file = authorized_keys();
  const std::string before = is_listed_or_throw(file) ? read_file(file) : "";
  std::string after;
  for (const std::string& line : split(before, '\n')) {
    if (!line.empty() && trim(line) != key) after += line + "\n";
  }
  if (opens) after += key + "\n";
  if (after == before) return;
  if (!std::filesystem::exists(file.parent_path())) {
    make_folder(file.parent_path());
    std::filesystem::permissions(file.parent_path(), std::filesystem::perms::owner_all);
  }
  write_file_atomic(file, after, kOwnerOnly);
}

Json join(const Json& question) {
  const std::string& folder = question.at("folder").as_string();
  if (const auto other = other_cluster(folder)) {
    throw UsageError(fmt::format("it belongs to cluster {}", *other), "take it out of that one first");
  }
  set_key(question.at("key").as_string(), true);
  make_own_folders(home(), kMembers);
  write_file_atomic(
      member_file(),
      Json::object(
          {{"schema", "dtrain.cluster-member/1"}, {"cluster", question.at("cluster").as_string()}, {"folder", folder}})
              .dump() +
          "\n",
      kOwnerOnly);
  return Json::object();
}

Json leave(const Json& question) {
  set_key(question.at("key").as_string(), false);
  if (!is_listed_or_throw(member_file())) return Json::object();
  const Json json = Json::parse(read_file(member_file()), member_file().string());
  std::error_code ignored;
  if (json.at("folder").as_string() == question.at("folder").as_string()) {
    std::filesystem::remove(member_file(), ignored);
    std::filesystem::remove(member_file().parent_path(), ignored);
  }
  return Json::object();
}

HostFacts facts_from(const Json& json, std::int64_t asked, std::int64_t heard) {
  const Json& other = json.at("other_cluster");
  return {.machine = json.at("machine").as_string(),
          .host_name = json.at("host_name").as_string(),
          .cpus = static_cast<int>(json.at("cpus").as_integer()),
          .memory = static_cast<std::uint64_t>(json.at("memory_bytes").as_integer()),
          .disk_free = static_cast<std::uint64_t>(json.at("disk_free_bytes").as_integer()),
          .other_cluster = other.is_null() ? std::nullopt : std::optional(other.as_string()),
          .sees_shared = json.at("sees_shared").as_bool(),
          .checkup = checkup_from_json(json.at("report")),
          .clock = clock_offset(asked, heard, json.at("time_ns").as_integer(), json.at("took_ns").as_integer())};
}

}  // namespace

std::optional<Json> answer_as_member(const Json& question) {
  const std::string& ask = question.at("ask").as_string();
  if (ask == "look") return look(question);
  if (ask == "join") return join(question);
  if (ask == "leave") return leave(question);
  return std::nullopt;
}

Json ask_there(net::SshSession& session, const std::vector<std::string>& program, const Json& question,
               std::chrono::milliseconds deadline) {
  net::SshCommand command{.argv = program, .input = question.dump()};
  command.argv.insert(command.argv.end(), {"agent", "--registered"});
  const Said said = said_by(session, std::move(command), deadline);
  if (!said.exit.ok()) {
    throw RemoteError(fmt::format("{}: dtrain there {}: {}", session.name(), end_text(said.exit), trim(said.errors)));
  }
  Json answer = Json::parse(said.output, fmt::format("the answer of {}", session.name()));
  const Json* error = answer.find("error");
  if (!error) return answer;
  try {
    throw_error(*error);
  } catch (const UsageError& refusal) {
    throw UsageError(fmt::format("{}: {}", session.name(), refusal.what()), refusal.hint());
  } catch (const Error& failure) {
    throw RemoteError(fmt::format("{}: {}", session.name(), failure.what()), failure.hint());
  }
}

LookedAt look_at_host(net::SshSession& session, launcher::ProgramCopy& program, const RegisteredCluster& cluster,
                      const std::string& probe) {
  check_kind(session);
  LookedAt looked{.program = program.make_ready(session).command};
  check_starts(session, looked.program);
  const std::int64_t asked = wall_nanoseconds();
  const Json answer = ask_there(
      session, looked.program,
      Json::object({{"ask", "look"}, {"cluster", cluster.name}, {"folder", cluster.folder}, {"probe", probe}}));
  looked.facts = facts_from(answer, asked, wall_nanoseconds());
  return looked;
}

}  // namespace dtrain::cluster

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include <dtrain/base/enum_names.hpp>
#include <dtrain/net/ssh.hpp>

#include "security.hpp"

namespace dtrain::doctor {
namespace {

constexpr EnumName<Guard> kGuardNames[] = {{Guard::tls, "TLS 1.3 with the job's token"},
                                           {Guard::handshake, "TLS until connected, then plain bytes"},
                                           {Guard::same_user, "a Unix socket for this user"},
                                           {Guard::none, "neither encrypted nor authenticated"}};
constexpr unsigned kGroupReads = 0040, kGroupWrites = 0020, kOthersRead = 0004, kOthersWrite = 0002, kSticky = 01000;

bool is_local(const PortFacts& port) {
  return port.port == 0 || port.address == "::1" || port.address.starts_with("127.");
}

std::string place_of(const PortFacts& port) {
  if (port.port == 0) return port.address;
  const bool is_six = port.address.find(':') != std::string::npos;
  return is_six ? fmt::format("[{}]:{}", port.address, port.port) : fmt::format("{}:{}", port.address, port.port);
}

Finding judge_port(const PortFacts& port) {
  const std::string what = fmt::format("{} {} listens at {} ({}): {}", port.role, port.process, place_of(port),
                                       port.use, enum_name(kGuardNames, port.guard));
  if (port.guard == Guard::tls || port.guard == Guard::same_user) return {Level::fine, "port", what, "", ""};
  const Level level = is_local(port) ? Level::note : Level::warning;
  const char* const who = is_local(port) ? "every user of this machine" : "every machine that reaches this one";
  if (port.guard == Guard::handshake)
    return {level, "port", what, "a machine on the way can read and change gradients and states",
            "start the job again without --plain-data"};
  const std::string why = fmt::format("{} can connect", who);
  if (port.use == "gloo" || port.use == "nccl")
    return {level, "port", what, why + ", and gradients travel as plain bytes",
            "start the job again with --transport tcp"};
  return {level, "port", what, why,
          is_local(port) ? fmt::format("ss -lptn 'sport = :{}'; use what the program itself has for this", port.port)
                         : fmt::format("close the port for other networks: iptables -A INPUT -p tcp --dport {} ! -s "
                                       "NETWORK -j DROP; or use a closed network: --announce ADDRESS",
                                       port.port)};
}

std::string rights_of(const FileFacts& file) {
  return fmt::format("{} ({}): {}:{}, mode {:04o}", file.path, file.use, file.owner, file.group, file.mode);
}

// Groups that hold one user have that user's name.
bool has_private_group(const FileFacts& file) { return file.group == file.owner; }

bool group_may(const FileFacts& file, unsigned right) { return (file.mode & right) != 0 && !has_private_group(file); }

// In a folder with the sticky bit others can make files, but neither rename nor remove those of its owner.
bool is_sticky(const FileFacts& file) { return file.folder && (file.mode & kSticky) != 0; }

Finding judge_file(const FileFacts& file, const std::string& owner) {
  const std::string what = rights_of(file), path = net::shell_quoted(file.path);
  const bool is_shown =
      file.kind == FileFacts::Kind::secret && ((file.mode & kOthersRead) != 0 || group_may(file, kGroupReads));
  if (is_shown && file.use == kQueuedCommand)
    return {Level::problem, "file", what, "others can read the job's environment, with the values of --env",
            "chmod 600 " + path};
  if (is_shown)
    return {Level::problem, "file", what, "others can read the job's token, and run programs on all of its hosts",
            fmt::format("chmod 600 {}; then `dtrain stop` and --resume, for a new token", path)};
  if ((file.mode & kOthersWrite) != 0 && !is_sticky(file))
    return {Level::problem, "file", what, "every user can change what the job believes", "chmod o-w " + path};
  if (group_may(file, kGroupWrites) && !is_sticky(file))
    return {Level::warning, "file", what, fmt::format("group {} can change what the job believes", file.group),
            "chmod g-w " + path};
  if (file.owner != owner && file.owner != "root")
    return {Level::warning, "file", what,
            fmt::format("the job belongs to {}, and {} can change this", owner, file.owner),
            fmt::format("chown {} {}", owner, path)};
  const bool is_read = (file.mode & kOthersRead) != 0 || group_may(file, kGroupReads);
  if (is_read && !file.folder && (file.use == "logs" || file.use == "checkpoint"))
    return {Level::note, "file", what,
            file.use == "logs" ? "others can read what the workers print" : "others can read the model",
            "chmod go-r " + path};
  return {Level::fine, "file", what, "", ""};
}

// Files of one use that are judged alike become one finding, for the first of them.
std::vector<Finding> summed_up(const std::vector<std::pair<const FileFacts*, Finding>>& judged) {
  std::vector<Finding> found;
  std::map<std::tuple<std::string, Level, std::string>, std::size_t> places;
  std::map<std::size_t, int> more;
  for (const auto& [file, finding] : judged) {
    const auto [place, is_new] = places.try_emplace({file->use, finding.level, finding.why}, found.size());
    if (is_new) {
      found.push_back(finding);
    } else {
      ++more[place->second];
      if (!finding.fix.empty()) found[place->second].fix += " " + net::shell_quoted(file->path);
    }
  }
  for (const auto& [place, count] : more) found[place].what += fmt::format(", and {} more", count);
  return found;
}

std::string_view readers_of(const FileFacts& file) {
  if ((file.mode & kOthersRead) != 0) return "everyone";
  return (file.mode & kGroupReads) != 0 ? "group" : "owner";
}

}  // namespace

std::vector<Finding> judge_ports(const SecurityFacts& facts) {
  std::vector<Finding> found;
  for (const PortFacts& port : facts.ports) found.push_back(judge_port(port));
  for (const pid_t process : facts.unseen) {
    found.push_back({Level::warning, "port", fmt::format("the ports of process {} cannot be seen", process),
                     "it belongs to another user, or this container may not look",
                     "repeat this as root of the machine"});
  }
  const job::CoordinatorFile& coordinator = facts.coordinator;
  const job::JobFolder folder{facts.folder};
  if (!facts.has_job) {
    found.push_back({Level::fine, "port", "no job has run in this folder", "", ""});
  } else if (coordinator.over()) {
    found.push_back({Level::fine, "port", fmt::format("the job is over: {}", coordinator.ended), "", ""});
  } else if (facts.ports.empty() && facts.unseen.empty()) {
    found.push_back({Level::note, "port", "no process of the job runs on this machine",
                     fmt::format("the coordinator runs on {}", coordinator.host),
                     fmt::format("dtrain run -H {} -- {}", net::shell_quoted(folder.hosts().string()),
                                 folder.command("doctor security"))});
  }
  return found;
}

std::vector<Finding> judge_files(const SecurityFacts& facts) {
  const std::string owner = facts.files.empty() ? "" : facts.files.front().owner;
  std::vector<std::pair<const FileFacts*, Finding>> judged;
  for (const FileFacts& file : facts.files) judged.emplace_back(&file, judge_file(file, owner));
  std::vector<Finding> found = summed_up(judged);
  for (const std::string& path : facts.unfound) {
    found.push_back(
        {Level::note, "file", fmt::format("{} (checkpoint) cannot be found from here", path),
         "who may read and change it was not looked at",
         fmt::format("where its file system is mounted: {}", job::JobFolder{facts.folder}.command("doctor security"))});
  }
  return found;
}

std::vector<Finding> judge_choices(const SecurityFacts& facts) {
  const job::CoordinatorFile& job = facts.coordinator;
  std::vector<Finding> found;
  if (!facts.has_job) return found;
  if (job.data == "plain") {
    found.push_back({Level::warning, "data",
                     "gradients and states travel between machines as plain bytes (--plain-data)",
                     "a machine on the way can read and change them", "start the job again without --plain-data"});
  } else if (job.data == "gloo" || job.data == "nccl") {
    found.push_back({Level::warning, "data", fmt::format("gradients travel by {}", job.data),
                     "it neither encrypts nor authenticates", "start the job again with --transport tcp"});
  } else if (job.data == "tls") {
    found.push_back({Level::fine, "data", "gradients and states travel over TLS 1.3 between machines", "", ""});
  } else {
    found.push_back({Level::note, "data", "how gradients travel is not recorded",
                     "an earlier version wrote coordinator.json", "start the job again"});
  }
  if (job.runs_program) {
    found.push_back({Level::note, "program", "the job runs a program of its own",
                     "dtrain neither encrypts nor authenticates the connections that the program opens",
                     "run it in a closed network: --announce ADDRESS"});
  }
  return found;
}

Json to_json(const SecurityFacts& facts) {
  constexpr EnumName<Guard> kWords[] = {
      {Guard::tls, "tls"}, {Guard::handshake, "handshake"}, {Guard::same_user, "same-user"}, {Guard::none, "none"}};
  Json ports = Json::array(), files = Json::array();
  for (const PortFacts& port : facts.ports) {
    Json row = Json::object({{"process", std::int64_t{port.process}},
                             {"role", port.role},
                             {"use", port.use},
                             {"address", port.address},
                             {"port", Json()},
                             {"protection", enum_name(kWords, port.guard)},
                             {"reachable_from", is_local(port) ? "this machine" : "other machines"}});
    if (port.port != 0) row["port"] = std::int64_t{port.port};
    ports.push_back(std::move(row));
  }
  for (const FileFacts& file : facts.files) {
    files.push_back(Json::object({{"path", file.path},
                                  {"use", file.use},
                                  {"secret", file.kind == FileFacts::Kind::secret},
                                  {"owner", file.owner},
                                  {"group", file.group},
                                  {"mode", fmt::format("{:04o}", file.mode)},
                                  {"readers", std::string(readers_of(file))}}));
  }
  Json document = Json::object({{"host", facts.host},
                                {"job_dir", facts.folder},
                                {"running", facts.has_job && !facts.coordinator.over()},
                                {"data", Json()},
                                {"runs_program", facts.coordinator.runs_program},
                                {"ports", std::move(ports)},
                                {"files", std::move(files)}});
  if (!facts.coordinator.data.empty()) document["data"] = facts.coordinator.data;
  return document;
}

}  // namespace dtrain::doctor

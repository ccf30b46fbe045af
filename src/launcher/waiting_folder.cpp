#include <dtrain/launcher/waiting_folder.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/own_files.hpp>
#include <dtrain/elastic/agent.hpp>

namespace dtrain::launcher {
namespace {

constexpr unsigned kOrderMode = 0600;
constexpr std::string_view kHostEnd = ".json", kOrderEnd = ".order", kEndEnd = ".end";
// Between a host's name and the number of an order; no name of a host holds it.
constexpr char kOfHost = '+';

// Older versions wrote fewer keys.
std::string text_if_any(const Json& json, std::string_view key) {
  const Json* text = json.find(key);
  return text ? text->as_string() : "";
}

std::optional<WaitingHost> host_in(const Path& file) {
  try {
    const Json json = Json::parse(read_file(file), file.string());
    const auto state = enum_value(kWaitingStateNames, json.at("state").as_string());
    const std::string& host = json.at("host").as_string();
    // Orders for the host have its name, which must not lead out of the folder.
    if (!state || file.filename() != host + std::string(kHostEnd)) return std::nullopt;
    return WaitingHost{host,
                       *state,
                       json.at("pid").as_integer(),
                       json.at("time").as_integer(),
                       text_if_any(json, "process"),
                       text_if_any(json, "machine")};
  } catch (const Error&) {  // removed meanwhile, or damaged
    return std::nullopt;
  }
}

void remove_quietly(const Path& file) {
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
}

}  // namespace

void WaitingFolder::renew(const WaitingHost& host) const {
  make_own_folder(path_);
  const Json json = Json::object({{"schema", "dtrain.waiting/1"},
                                  {"host", host.name},
                                  {"state", enum_name(kWaitingStateNames, host.state)},
                                  {"pid", host.pid},
                                  {"time", host.time},
                                  {"process", host.process},
                                  {"machine", host.machine}});
  write_file_atomic(path_ / (host.name + std::string(kHostEnd)), json.dump() + "\n");
}

void WaitingFolder::forget(const std::string& host) const {
  for (const std::string& name : listing()) {
    if (name == host + std::string(kHostEnd) || name.starts_with(host + kOfHost)) remove_quietly(path_ / name);
  }
}

std::vector<Path> WaitingFolder::orders_for(const std::string& host) const {
  std::vector<Path> orders;
  for (const std::string& name : listing()) {
    if (name.starts_with(host + kOfHost) && name.ends_with(kOrderEnd)) orders.push_back(path_ / name);
  }
  return orders;
}

void WaitingFolder::report_end(const Path& order, const std::string& reason) const {
  write_file_atomic(end_of(order), reason);
}

std::optional<WaitingHost> WaitingFolder::find(const std::string& host) const {
  const Path file = path_ / (host + std::string(kHostEnd));
  return is_listed(file) ? host_in(file) : std::nullopt;
}

std::vector<WaitingHost> WaitingFolder::hosts() const {
  std::vector<WaitingHost> all;
  for (const std::string& name : listing()) {
    if (!name.ends_with(kHostEnd)) continue;
    if (auto host = host_in(path_ / name)) all.push_back(std::move(*host));
  }
  return all;
}

Path WaitingFolder::give(const std::string& host, const elastic::AgentOrder& order) const {
  make_own_folder(path_);
  Path file = path_ / fmt::format("{}{}{}{}", host, kOfHost, order.tree, kOrderEnd);
  write_file_atomic(file, elastic::to_json(order).dump(), kOrderMode);
  return file;
}

std::vector<std::string> WaitingFolder::listing() const {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path_, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::ranges::sort(names);
  return names;
}

Path WaitingFolder::end_of(const Path& order) {
  return order.string().substr(0, order.string().size() - kOrderEnd.size()) + std::string(kEndEnd);
}

}  // namespace dtrain::launcher

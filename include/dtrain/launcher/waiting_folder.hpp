// The files by which a coordinator and the hosts that wait for it find each other: <job folder>/waiting. A host has one
// file, which it renews, and one more for each order that a coordinator gives it. Only their owner may read orders,
// because they hold the job's token, and only that user obeys them; the folder is made for its owner alone. Every file
// has one writer, is replaced atomically, and is found by listing the folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/enum_names.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/elastic/agent_pool.hpp>

namespace dtrain::launcher {

enum class WaitingState { waiting, in_job, left };  // in_job: its agent runs; left: it takes no orders any more
constexpr EnumName<WaitingState> kWaitingStateNames[] = {
    {WaitingState::waiting, "waiting"}, {WaitingState::in_job, "in-job"}, {WaitingState::left, "left"}};

struct WaitingHost {
  std::string name;
  WaitingState state = WaitingState::waiting;
  std::int64_t pid = 0;   // of the process that waits, on that host
  std::int64_t time = 0;  // seconds since 1970 by that host's clock, of the last renewal
  // process_identity() of the pid: whether it is a process of this machine, and still the same one.
  std::string process{};
  std::string machine{};  // what that machine calls itself; for people
  friend bool operator==(const WaitingHost&, const WaitingHost&) = default;
};

// A host renews its file this often.
constexpr std::chrono::seconds kRenewInterval{2};

class WaitingFolder {
 public:
  explicit WaitingFolder(const Path& job_folder) : path_(job_folder / "waiting") {}

  // The host's side. All throw Error if the folder cannot be written.
  void renew(const WaitingHost& host) const;
  // Removes the host's file and the orders for it.
  void forget(const std::string& host) const;
  std::vector<Path> orders_for(const std::string& host) const;
  // Reports that the agent of this order ended, and why; the order's file is gone then.
  void report_end(const Path& order, const std::string& reason) const;

  // nullopt: there is no such host, or its file cannot be read now.
  std::optional<WaitingHost> find(const std::string& host) const;
  std::vector<WaitingHost> hosts() const;  // by name

  // The coordinator's side.
  Path give(const std::string& host, const elastic::AgentOrder& order) const;
  // The names of all files now; empty if the folder cannot be read.
  std::vector<std::string> listing() const;
  static Path end_of(const Path& order);  // the file of report_end()

 private:
  Path path_;
};

}  // namespace dtrain::launcher

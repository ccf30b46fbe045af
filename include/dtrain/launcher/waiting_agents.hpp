// The host's side of FolderLauncher: starts an agent for each order in the folder.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/launcher/waiting_folder.hpp>

namespace dtrain::launcher {

// One thread uses it and calls look() several times a second: agents are its children, and end with that thread.
class WaitingAgents {
 public:
  using Note = std::function<void(const std::string& line)>;
  // `command` starts an agent and is followed by the order's file; empty: this program's own.
  WaitingAgents(const WaitingFolder& folder, std::string host, Note note, std::vector<std::string> command = {});
  ~WaitingAgents();  // ends agents that still run
  WaitingAgents(const WaitingAgents&) = delete;

  // Starts agents for new orders, and reports those that ended. An agent whose coordinator gives the host a new order
  // is lost to it, and is ended. Orders of other users are refused. Throws nothing.
  void look();
  void refuse_orders() { refuses_ = true; }
  bool any() const;             // an agent runs
  void send(int signal) const;  // to all agents

 private:
  struct Running;
  bool obey(const Path& order);
  void start(const Path& order);
  void reap();
  void report_end(const Path& order, const std::string& reason) const;

  const WaitingFolder& folder_;
  const std::string host_;
  const Note note_;
  std::vector<std::string> command_;
  std::vector<Running> running_;
  std::vector<Path> begun_;  // orders of which an agent was started, or that are damaged or foreign
  bool refuses_ = false;
};

}  // namespace dtrain::launcher

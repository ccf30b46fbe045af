// The machines of a cluster of registered hosts, as this machine reaches them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/reporter.hpp>
#include <dtrain/cluster/member.hpp>
#include <dtrain/cluster/registered.hpp>

namespace dtrain::cli {

// What one host answered.
struct SeenHost {
  std::string name{};
  std::optional<cluster::HostFacts> facts{};  // nullopt: it did not answer
  std::string why{}, hint{};                  // why it did not
  bool is_fit() const { return facts.has_value(); }
};
// "h1: REASON\nh2: REASON" of those that did not answer; empty: all did.
std::string unfit_text(const std::vector<SeenHost>& hosts);

// One thread. Each call blocks until the machines have answered, or are given up; a stop signal ends it with Stopped.
class Site {
 public:
  // `name`: of the cluster. The reporter must outlive this.
  Site(std::string name, Reporter& reporter) : name_(std::move(name)), reporter_(reporter) {}

  // An answer of the head, to which one connection is kept. Throws RemoteError or UsageError.
  Json ask_head(const cluster::RegisteredHost& head, const Json& question,
                std::chrono::seconds deadline = std::chrono::seconds(60));
  // All hosts of the cluster at the same time, in its order. `probe`: the file that they must see.
  std::vector<SeenHost> look(const cluster::RegisteredCluster& cluster, const std::string& probe);
  // Sends `join` or `leave` to these hosts. Returns those that did not do it.
  std::vector<SeenHost> tell(const char* ask, const cluster::RegisteredCluster& cluster,
                             const std::vector<cluster::RegisteredHost>& hosts, const std::string& key);

 private:
  template <typename Work>
  std::vector<SeenHost> on_all(const std::vector<cluster::RegisteredHost>& hosts, const Work& work);
  void note_copy(const launcher::ProgramCopy::Ready& ready, const std::string& host);

  const std::string name_;
  Reporter& reporter_;
  launcher::ProgramCopy program_;
  std::optional<net::SshSession> head_;
  std::vector<std::string> head_program_;
};

}  // namespace dtrain::cli

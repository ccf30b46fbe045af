#include <fmt/format.h>

#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/cluster/provider.hpp>
#include <dtrain/launcher/program_copy.hpp>

namespace dtrain::cluster {
namespace {

using namespace std::chrono_literals;
constexpr auto kBetweenTries = 2s;

class HostsProvider final : public Provider {
 public:
  explicit HostsProvider(RegisteredCluster cluster) : cluster_(std::move(cluster)) {}

  std::vector<Member> members() override {
    std::vector<Member> all;
    for (const RegisteredHost& host : cluster_.hosts) all.push_back({host.name, host.target()});
    return all;
  }

  net::SshOptions ssh_options() const override { return ssh_options_of_registered(cluster_.name); }

  net::SshSession log_in(std::chrono::seconds patience) const override {
    const auto until = std::chrono::steady_clock::now() + patience;
    for (;;) {
      try {
        return net::SshSession::connect(cluster_.head().target(), ssh_options());
      } catch (const RemoteError& error) {
        if (std::chrono::steady_clock::now() > until) {
          throw RemoteError(fmt::format("the head of cluster {}: {}", cluster_.name, error.what()), error.hint());
        }
      }
      if (stop_signal() != 0) throw Stopped("stopped by a signal");
      std::this_thread::sleep_for(kBetweenTries);
    }
  }

  net::SshTarget head_target(const net::SshSession&) const override { return cluster_.head().target(); }

  void require_queue(bool down_when_done) const override {
    if (cluster_.ends) {
      throw UsageError(fmt::format("cluster {} takes no jobs: it is being taken down", cluster_.name),
                       fmt::format("dtrain cluster down {} completes that", cluster_.name));
    }
    if (!down_when_done) return;
    throw UsageError(
        fmt::format("setting 'down-when-done': the machines of cluster {} are not dtrain's to end", cluster_.name),
        "leave it out; the queue waits for the next job, which costs nothing");
  }

  std::string prepare_head(net::SshSession& head, const Note& note) override {
    launcher::ProgramCopy copy;
    const launcher::ProgramCopy::Ready ready = copy.make_ready(head);
    if (ready.copied > 0) note(fmt::format("copied dtrain to {}", head.name()));
    // A copy is in the home folder, which the line leaves.
    const std::string& program = ready.command.front();
    const std::string place =
        program.starts_with('/') ? net::shell_quoted(program) : "\"$HOME\"/" + net::shell_quoted(program);
    return fmt::format("cd {} && exec {}", net::shell_quoted(cluster_.shared), place);
  }

 private:
  const RegisteredCluster cluster_;
};

}  // namespace

std::unique_ptr<Provider> provider_of(RegisteredCluster cluster) {
  return std::make_unique<HostsProvider>(std::move(cluster));
}

}  // namespace dtrain::cluster

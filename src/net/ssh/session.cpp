#include "session.hpp"

#include <algorithm>
#include <exception>
#include <random>
#include <utility>

namespace dtrain::net {
namespace {

using namespace std::chrono_literals;
constexpr auto kFirstPause = 50ms, kLongestPause = 1000ms;

// Pauses that many who were turned away at the same moment do not share: between nothing and a limit that doubles.
class Pauses {
 public:
  std::chrono::milliseconds next() {
    const auto limit = limit_;
    limit_ = std::min(limit_ * 2, std::chrono::milliseconds(kLongestPause));
    return std::chrono::milliseconds(std::uniform_int_distribution<long>(1, limit.count())(random_));
  }

 private:
  std::minstd_rand random_{std::random_device{}()};
  std::chrono::milliseconds limit_ = kFirstPause;
};

ssh::Connected connect_patiently(const SshTarget& target, const SshOptions& options) {
  const ssh::Patience patience{ssh::Clock::now() + options.connect_deadline, options.stop};
  Pauses pauses;
  std::exception_ptr turned_away;
  for (;;) {
    try {
      return ssh::connect(target, options, patience);
    } catch (const SshTurnedAway&) {
      patience.sleep(pauses.next());
      if (patience.is_over()) throw;
      turned_away = std::current_exception();
    } catch (const Error&) {
      // The deadline cut this try short, wherever it was: what was wrong all the time is what the others met.
      if (turned_away && patience.is_over()) std::rethrow_exception(turned_away);
      throw;
    }
  }
}

}  // namespace

SshOptions user_ssh_options(const Path& home, std::string agent_socket) {
  SshOptions options;
  const Path folder = home / ".ssh";
  options.config = folder / "config";
  options.system_config = "/etc/ssh/ssh_config";
  options.user_known_hosts = {folder / "known_hosts", folder / "known_hosts2"};
  options.global_known_hosts = {"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"};
  for (const char* key : {"id_ed25519", "id_ecdsa", "id_rsa"}) options.identities.push_back(folder / key);
  options.agent_socket = std::move(agent_socket);
  return options;
}

void use_only(const Path& config, SshOptions& options) {
  options.config = config;
  options.system_config.clear();
}

SshSession SshSession::connect(const SshTarget& target, const SshOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  state->name = to_string(target);
  state->connected = connect_patiently(target, options);
  state->connection().begin_events();
  return SshSession(std::move(state));
}

SshSession::SshSession(std::unique_ptr<State> state) : state_(std::move(state)) {}
SshSession::SshSession(SshSession&&) noexcept = default;
SshSession& SshSession::operator=(SshSession&&) noexcept = default;
SshSession::~SshSession() = default;

const std::string& SshSession::name() const { return state_->name; }
const std::string& SshSession::user() const { return state_->connected.user; }
std::string SshSession::local_address() const { return state_->connected.local_address; }
std::string SshSession::peer_address() const { return state_->connected.peer_address; }

}  // namespace dtrain::net

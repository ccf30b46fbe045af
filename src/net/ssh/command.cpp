// One command on the host, from its line to its end.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include <dtrain/net/ssh.hpp>

#include "channel.hpp"
#include "login_text.hpp"
#include "session.hpp"

namespace dtrain::net {
namespace {

using namespace std::chrono_literals;
constexpr auto kStartDeadline = 20s;  // for sshd to open the channel and start the shell
constexpr auto kGrace = 2s;           // between the signals, and after the last one
// sshd takes no signals for root's programs, so a second shell of the same connection sends them: the first program is
// a child of the same sshd, and the leader of its process group. The user's shell may be fish or tcsh, so the script is
// one word on one line, for sh; dash takes `--` only after `kill -s`.
constexpr std::string_view kSignalOthers =
    "exec sh -c 'for p in $(cat /proc/$PPID/task/*/children 2>/dev/null || pgrep -P $PPID); do "
    "[ $p != $$ ] && kill -s {0} -- -$p 2>/dev/null && sent=1; done; [ -n \"$sent\" ]'";

// Signs of life of a host behind a jump host or a ProxyCommand, where TCP's reach no farther than the first of them.
// The host's kernel gives those, but its sshd gives these: a host that is only busy has longer.
class LifeSigns {
 public:
  LifeSigns(ssh::Connection& connection, std::chrono::milliseconds silence)
      : connection_(connection), silence_(silence) {}

  // Called again and again between pumps. Throws RemoteError once too many requests are without an answer: the requests
  // count and not the time, in which this process may have been stopped.
  void look() {
    const auto now = ssh::Clock::now();
    if (connection_.received() != received_) {
      received_ = connection_.received();
      since_ = now;
      unanswered_ = 0;
    }
    if (now - since_ < silence_) return;
    if (unanswered_ == kMostUnanswered) {
      const auto waited = std::chrono::ceil<std::chrono::seconds>(silence_ * (kMostUnanswered + 1));
      connection_.give_up(
          fmt::format("the connection was lost while a command ran: nothing came for {} s", waited.count()),
          "is the host still up, and its network?");
    }
    connection_.ask_for_life_sign();
    since_ = now;
    ++unanswered_;
  }

 private:
  static constexpr int kMostUnanswered = 5;

  ssh::Connection& connection_;
  const std::chrono::milliseconds silence_;
  std::uint64_t received_ = 0;
  ssh::Clock::time_point since_ = ssh::Clock::now();  // something came, or was asked for
  int unanswered_ = 0;
};

class Execution {
 public:
  Execution(SshSession::State& session, const SshCommand& command)
      : session_(session),
        connection_(session.connection()),
        command_(command),
        channel_(connection_, session.patience(kStartDeadline)),
        input_(command.input) {
    if (session.connected.carrier) life_signs_.emplace(connection_, session.options.silence);
  }

  SshExit run() {
    channel_.exec(shell_line(command_), session_.patience(kStartDeadline));
    try {
      const auto until = command_.deadline ? ssh::Clock::now() + *command_.deadline : ssh::Clock::time_point::max();
      if (serve({until, session_.options.stop})) return whole_result();
    } catch (...) {
      end();
      throw;
    }
    end();
    SshExit exit = result();
    exit.timed_out = true;
    return exit;
  }

 private:
  // Until the program ended (true) or the patience did.
  bool serve(const ssh::Patience& patience) {
    while (!channel_.is_closed()) {
      if (patience.is_over()) return false;
      if (connection_.is_lost()) connection_.fail("the connection was lost while a command ran");
      if (life_signs_) life_signs_->look();
      feed();
      connection_.pump(patience);
      deliver();
    }
    deliver();
    return true;
  }

  void feed() {
    if (fed_) return;
    if (channel_.send(input_) && !input_.empty()) return;
    channel_.send_end();
    fed_ = true;
  }

  void deliver() {
    std::string output = channel_.take_output();
    const std::string error = channel_.take_error();
    if (command_.skip_login_text) output = login_.take(output);
    if (!output.empty() && command_.on_output) command_.on_output(output);
    if (!error.empty() && command_.on_error) command_.on_error(error);
  }

  // Its last output is dropped. sshd ends the program of a lost connection.
  void end() {
    for (const std::string signal : {"TERM", "KILL"}) {
      const ssh::Patience grace{ssh::Clock::now() + kGrace, {}};
      if (channel_.is_closed() || connection_.is_lost()) return;
      session_.sftp = nullptr;  // its server is such a child too
      if (!signal_from_beside(signal, grace)) channel_.send_signal(signal.c_str());
      while (!channel_.is_closed() && !connection_.is_lost() && !grace.is_over()) pump_away(channel_, grace);
    }
  }

  bool signal_from_beside(const std::string& signal, const ssh::Patience& patience) {
    try {
      ssh::Channel beside(connection_, patience);
      beside.exec(fmt::format(kSignalOthers, signal), patience);
      while (!beside.is_closed() && !connection_.is_lost() && !patience.is_over()) pump_away(beside, patience);
      return beside.exit_code() == 0;
    } catch (const RemoteError&) {  // no second channel
      return false;
    }
  }

  void pump_away(ssh::Channel& channel, const ssh::Patience& patience) {
    connection_.pump(patience);
    channel.take_output();
    channel.take_error();
    channel_.take_output();
    channel_.take_error();
  }

  SshExit result() const {
    SshExit exit;
    exit.signal = channel_.exit_signal();
    if (exit.signal.empty()) exit.code = channel_.exit_code();
    return exit;
  }

  SshExit whole_result() const {
    const SshExit exit = result();
    if (exit.code < 0) connection_.fail("a command's end was not told", "look at the log of its sshd");
    const std::string printed = login_.is_over() ? std::string() : login_.first_line();
    if (printed.empty()) return exit;
    throw RemoteError(
        fmt::format("{}: the command did not run: the user's shell printed '{}'", connection_.name(), printed),
        ssh::kLoginTextHint);
  }

  SshSession::State& session_;
  ssh::Connection& connection_;
  const SshCommand& command_;
  ssh::Channel channel_;
  std::optional<LifeSigns> life_signs_;  // behind another host
  ssh::LoginText login_;                 // with skip_login_text
  std::string_view input_;               // what is still to be sent
  bool fed_ = false;
};

}  // namespace

SshExit SshSession::run(const SshCommand& command) { return Execution(*state_, command).run(); }

}  // namespace dtrain::net

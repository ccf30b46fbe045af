#include "doctor_hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stop_token>
#include <thread>
#include <tuple>
#include <utility>

#include <dtrain/base/files.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/base/parallel.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/launcher/program_copy.hpp>

#include "job/report/stop_tokens.hpp"

namespace dtrain::doctor {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::system_clock;
constexpr auto kPartDeadline = 60s;
constexpr std::size_t kSecretBytes = 32, kMarkBytes = 6;
constexpr std::size_t kMostSaid = 600;

double seconds_since_1970(Clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

std::string short_text(const std::string& said) { return said.substr(0, std::min(said.size(), kMostSaid)); }

Finding no_login(const std::string& what, const std::string& fix) {
  return {Level::problem, "ssh", what, "a job cannot start workers on this host", fix};
}

Finding new_host_key(const Finding& refused) {
  return {Level::note, "ssh", refused.what,
          "a job accepts this key at its first login; until then the host is not checked further",
          fmt::format("--accept-new-hosts accepts it now, and checks the host further; {}", refused.fix)};
}

// Two rounds: in the first the hosts serve, and go on doing so during the second, in which they reach for each other.
class Rounds {
 public:
  Rounds(const job::SshAccess& access, const std::string& folder)
      : hosts_(job::read_hosts(access)),
        access_(access),
        folder_(folder),
        secret_(to_hex(unpredictable_bytes(kSecretBytes))),
        mark_(to_hex(unpredictable_bytes(kMarkBytes))),
        reports_(hosts_.names.size()),
        answers_(hosts_.names.size()) {
    for (std::size_t host = 0; host < reports_.size(); ++host) reports_[host].facts.name = hosts_.names[host];
  }

  std::vector<HostDiagnosis> act() {
    const job::StopWatch watch;
    std::stop_source over;
    const std::stop_callback stopped(watch.token(), [&over] { over.request_stop(); });
    std::jthread serving([&] { serve(over.get_token()); });
    wait_for_answers(watch.token());
    if (!watch.token().stop_requested()) reach(watch.token());
    over.request_stop();
    serving.join();
    if (!watch.token().stop_requested()) try_as_a_job(watch.token());
    if (stop_signal() != 0) throw Interrupted(stop_signal(), "not all hosts were checked");
    return std::move(reports_);
  }

 private:
  Json order(std::size_t host) const {
    return Json::object({{"secret", secret_}, {"number", std::uint64_t{host}}, {"folder", folder_}, {"mark", mark_}});
  }

  launcher::FanOutOptions options(std::stop_token stop) const {
    launcher::FanOutOptions options = job::fan_out_options(access_, std::move(stop));
    options.parallel = static_cast<int>(hosts_.names.size());  // all must be there at once
    return options;
  }

  void serve(std::stop_token over) {
    launcher::fan_out(
        hosts_.targets, options(std::move(over)),
        [this](std::size_t host, net::SshSession& session) { serve_on(host, session); },
        [this](std::size_t host, const auto& failure, auto took) { end_serving(host, failure, took); });
  }

  void serve_on(std::size_t host, net::SshSession& session) {
    std::string said, complained;
    net::SshCommand command = part("serve", session, order(host), complained);
    const auto asked = Clock::now();
    command.on_output = [&](std::string_view bytes) {
      said += bytes;
      if (said.ends_with('\n') && !reports_[host].facts.answered) hear(host, said, asked);
    };
    command.deadline = 2 * kPartDeadline;
    std::ignore = session.run(command);  // what counts is whether it answered
    if (!reports_[host].facts.answered)
      throw Error(fmt::format("dtrain on the host did not answer: {}", short_text(complained)));
  }

  net::SshCommand part(const char* name, net::SshSession& session, const Json& order, std::string& complained) {
    net::SshCommand command;
    command.argv = program_.make_ready(session).command;
    command.argv.insert(command.argv.end(), {"doctor", "--part", name, "--json"});
    command.input = order.dump();
    command.skip_login_text = true;
    command.on_error = [&complained](std::string_view bytes) { complained += bytes; };
    return command;
  }

  // Throws DataError for an answer of another version of dtrain, which is a failure of the host: it did not answer.
  void hear(std::size_t host, const std::string& said, Clock::time_point asked) {
    const double heard = seconds_since_1970(Clock::now());
    const Json answer = Json::parse(said, hosts_.names[host]);
    const double there = static_cast<double>(answer.at("time_ns").as_integer()) * 1e-9;
    HostDiagnosis report;
    report.facts.name = hosts_.names[host];
    report.facts.answered = true;
    report.facts.clock_at_least = there - heard;
    report.facts.clock_at_most = there - seconds_since_1970(asked);
    report.facts.folder.write_error = answer.at("write_error").as_string();
    report.facts.folder.made_link = answer.at("made_link").as_bool();
    report.machine = answer.at("facts");
    if (const Json* machine = report.machine.find("machine"); machine && machine->is_string())
      report.facts.machine = machine->as_string();
    for (const Json& finding : answer.at("findings").as_array()) report.findings.push_back(finding_from_json(finding));
    report.ending = launcher::HostEnding::done;
    const MutexLock lock(mutex_);
    reports_[host] = std::move(report);
    answers_[host] = answer;
    ++settled_;
    changed_.notify_all();
  }

  // A host that answered is asked to stop in the end: that is no failure of it.
  void end_serving(std::size_t host, const std::optional<launcher::HostFailure>& failure,
                   std::chrono::duration<double> took) {
    const MutexLock lock(mutex_);
    HostDiagnosis& report = reports_[host];
    if (report.facts.answered) return;
    report.ending = failure ? launcher::ending_of(failure) : launcher::HostEnding::failed;
    if (failure) report.findings = {no_login(failure->what, failure->hint)};
    if (failure && failure->kind == launcher::HostFailure::Kind::unreachable && took < access_.connect_timeout)
      unreached_.push_back(host);
    ++settled_;
    changed_.notify_all();
  }

  void wait_for_answers(std::stop_token stop) {
    const MutexLock lock(mutex_);
    changed_.wait(mutex_, std::move(stop), [this]() DTRAIN_REQUIRES(mutex_) { return settled_ == reports_.size(); });
  }

  void reach(std::stop_token stop) {
    std::vector<std::size_t> there;
    std::vector<net::SshTarget> targets;
    for (std::size_t host = 0; host < reports_.size(); ++host) {
      if (!reports_[host].facts.answered) continue;
      there.push_back(host);
      targets.push_back(hosts_.targets[host]);
    }
    launcher::fan_out(
        targets, options(std::move(stop)),
        [&](std::size_t i, net::SshSession& session) { reach_from(there[i], session); },
        [&](std::size_t i, const auto& failure, auto) {
          if (failure && failure->kind != launcher::HostFailure::Kind::stopped) spoil(there[i], *failure);
        });
  }

  // A job accepts the key of a new host at its first login, unless the configuration forbids that. Hosts that could not
  // be logged in to, and did not just keep silent, are tried that way. Nothing is run there, and the keys are
  // forgotten.
  void try_as_a_job(std::stop_token stop) {
    net::SshOptions ssh = options(std::move(stop)).ssh;
    if (unreached_.empty() || ssh.new_host_keys == net::NewHostKeys::accept) return;
    const std::string known =
        !ssh.known_hosts.empty() && is_listed(ssh.known_hosts) ? read_file(ssh.known_hosts) : std::string();
    const ScratchFolder scratch("dtrain-doctor");
    ssh.new_host_keys = net::NewHostKeys::accept_unless_strict;
    try_each_in_parallel(unreached_.size(), static_cast<std::size_t>(access_.parallel), [&](std::size_t i) {
      net::SshOptions own = ssh;
      own.known_hosts = scratch.path() / std::to_string(i);
      write_file_atomic(own.known_hosts, known);
      log_in_as_a_job(unreached_[i], own, known);
    });
  }

  // Each host's report belongs to its own thread. A login that needed no new key is one that failed by chance before.
  void log_in_as_a_job(std::size_t host, const net::SshOptions& ssh, const std::string& known) {
    HostDiagnosis& report = reports_[host];
    try {
      net::SshSession::connect(hosts_.targets[host], ssh);
      if (read_file(ssh.known_hosts) == known) return;
      report.ending = launcher::HostEnding::done;
      report.findings = {new_host_key(report.findings.front())};
    } catch (const net::SshLoginRefused& refused) {
      report.findings = {no_login(refused.what(), refused.hint())};
    } catch (const std::exception&) {  // the first failure stands
    }
  }

  void spoil(std::size_t host, const launcher::HostFailure& failure) {
    reports_[host].ending = launcher::HostEnding::failed;
    reports_[host].findings.push_back(
        {Level::problem, "ssh", failure.what, "the second connection to the host failed", failure.hint});
  }

  void reach_from(std::size_t host, net::SshSession& session) {
    Json peers = Json::array(), wanted = order(host);
    for (std::size_t other = 0; other < answers_.size(); ++other)
      peers.push_back(other == host || !reports_[other].facts.answered ? Json() : address_of(other));
    wanted["hosts"] = peers;
    std::string said, complained;
    net::SshCommand command = part("reach", session, wanted, complained);
    command.on_output = [&said](std::string_view bytes) { said += bytes; };
    command.deadline = kPartDeadline;
    if (!session.run(command).ok()) throw Error(fmt::format("dtrain on the host failed: {}", short_text(complained)));
    take_links(host, Json::parse(said, hosts_.names[host]));
  }

  Json address_of(std::size_t host) const {
    return Json::object({{"addresses", answers_[host].at("addresses")}, {"port", answers_[host].at("port")}});
  }

  // Each host's report belongs to its own thread in this round.
  void take_links(std::size_t host, const Json& answer) {
    HostFacts& facts = reports_[host].facts;
    for (const Json& link : answer.at("links").as_array()) {
      facts.links.push_back(
          link.is_null() ? LinkFacts{} : LinkFacts{link.at("milliseconds").as_number(), link.at("error").as_string()});
    }
    for (const Json& number : answer.at("seen").as_array())
      facts.folder.seen.push_back(static_cast<int>(number.as_integer()));
    const Json& kept = answer.at("lock_is_kept");
    if (!kept.is_null()) facts.folder.lock_is_kept = kept.as_bool();
  }

  const job::ChosenHosts hosts_;
  const job::SshAccess& access_;
  const std::string folder_, secret_, mark_;
  launcher::ProgramCopy program_;
  std::vector<HostDiagnosis> reports_;  // in the first round guarded by mutex_
  std::vector<Json> answers_;           // likewise
  std::vector<std::size_t> unreached_;  // likewise: hosts to which a job may be able to log in
  Mutex mutex_;
  StoppableCondVar changed_;
  std::size_t settled_ DTRAIN_GUARDED_BY(mutex_) = 0;  // hosts that answered or failed
};

}  // namespace

std::vector<HostDiagnosis> ask_hosts(const job::SshAccess& access, const std::string& folder) {
  return Rounds(access, folder).act();
}

}  // namespace dtrain::doctor

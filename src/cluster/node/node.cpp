#include <dtrain/cluster/node.hpp>

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <list>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/thread_error.hpp>
#include <dtrain/cluster/admission.hpp>
#include <dtrain/cluster/checkup.hpp>
#include <dtrain/cluster/compat_files.hpp>
#include <dtrain/cluster/fleet.hpp>
#include <dtrain/cluster/registry.hpp>
#include <dtrain/cluster/user_data.hpp>
#include <dtrain/net/channel.hpp>
#include <dtrain/net/instance_metadata.hpp>

#include "agent_start.hpp"
#include "own_registry.hpp"
#include "power_off.hpp"
#include "time_limit.hpp"

namespace dtrain::cluster {
namespace {

using namespace std::chrono_literals;
constexpr auto kDeadline = 10s;
constexpr auto kHeartbeat = 5s;
constexpr auto kTick = 200ms;
constexpr auto kPause = 2s;  // before the next attempt
constexpr auto kForGpus = 8s;
constexpr auto kReport = 60s;  // between reports without news
constexpr auto kNotice = 5s;   // between two looks for a notice of the machine's end

struct HeadEndpoint {  // the answer of the admission port
  std::uint16_t port = 0;
  std::string token;
  std::optional<std::chrono::seconds> ends_in;  // the head's machine; nullopt: it has no time limit
};

// `is_head`: its launch template is not that of workers.
NodeFacts own_facts(net::InstanceMetadata& metadata, bool is_head) {
  NodeFacts facts{.identity = identity_from(metadata.get("dynamic/instance-identity/document")),
                  .gpus = nvidia_device_count("/dev", std::nullopt)};
  facts.name =
      metadata.find(fmt::format("meta-data/tags/instance/{}", tag::kNode)).value_or(facts.identity.instance_id);
  if (!is_plain_word(facts.name)) facts.name = facts.identity.instance_id;  // the user has changed the tag
  if (is_head) return facts;
  facts.launch_template = metadata.find("meta-data/tags/instance/aws:ec2launchtemplate:id").value_or("");
  return facts;
}

HeadEndpoint request_join(const NodeOrder& order, const std::string& head, net::InstanceMetadata& metadata) {
  const Json claim = Json::object({{"document", metadata.get("dynamic/instance-identity/document")}});
  std::string answer;
  try {
    answer = net::ask_channel(head, kAdmissionPort, order.admission, claim.dump(), kDeadline,
                              {.purpose = kAdmissionPurpose, .from_privileged_port = true});
  } catch (const RemoteError& error) {
    throw RemoteError(fmt::format("the head at {}: {}", head, error.what()));
  }
  const Json reply = Json::parse(answer, "the head's answer");
  if (const Json* error = reply.find("error")) {
    throw RemoteError(fmt::format("the head does not admit this node: {}", error->as_string()));
  }
  const Json* left = reply.find("ends_in");
  return {static_cast<std::uint16_t>(reply.at("port").as_integer()), reply.at("token").as_string(),
          left ? std::optional(std::chrono::seconds(left->as_integer())) : std::nullopt};
}

// A service that does not answer reports no notice.
std::optional<net::EndNotice> notice_in(net::InstanceMetadata& metadata, const std::stop_token& stop = {}) {
  try {
    return net::end_notice(metadata, stop);
  } catch (const Error&) {
    return std::nullopt;
  }
}

Checkup look_at_machine(std::optional<net::EndNotice> notice) {
  Checkup checkup = look_at_gpus(kForGpus);
  checkup.disks = look_at_disks();
  checkup.notice = std::move(notice);
  return checkup;
}

// Without a head there is no work for this machine, whose own time limit may be hours away.
void end_with_cluster(const NodeOptions& options, TimeLimit& limit) {
  if (options.order.adopted || !limit.take_end(TimeLimit::Clock::now())) return;
  const auto note = [&](const std::string& line) {
    if (options.on_note) options.on_note(line);
  };
  note("powers off: the time limit of the cluster's head is over");
  if (const auto problem = attempt([] { power_off_machine(); })) note(problem->what());
}

// One connection to the head, from registration until it is lost. Threads: connect() runs in one of its own before
// frames are handled; the loop runs in the caller's thread and handles every frame; each agent start, the check that
// the head asks for, and the reports without being asked, have a thread, because all may take long. These threads send
// on the channel, which is safe from any thread, or post to the loop; `checks_`, `starts_` and `lost_` belong to the
// loop (`lost_` also to connect(), before the loop has frames). What a thread throws stays in it. run() joins that of
// connect(), the destructor the others, so nothing outlives the session. A lost connection ends the loop; run() then
// throws RemoteError, and run_node() connects again after a pause.
class HeadSession {
 public:
  HeadSession(const NodeOptions& options, const std::string& head, NodeFacts facts, TimeLimit& limit)
      : options_(options), head_(head), facts_(std::move(facts)), limit_(limit) {}

  void run(const HeadEndpoint& endpoint) {
    {
      // Frames that arrive before the loop runs wait in the channel.
      const std::jthread connecting([&] { connect(endpoint); });
      loop_.run();
    }
    if (!lost_.empty()) throw RemoteError(lost_);
  }

 private:
  void connect(const HeadEndpoint& endpoint) {
    try {
      channel_ = net::connect_channel(loop_, head_, endpoint.port, endpoint.token, kDeadline);
      loop_.post([this] { begin(); });
    } catch (const std::exception& error) {
      lost_ = error.what();
      loop_.stop();
    }
  }

  void begin() {
    channel_->listen({.on_frame = [this](const std::string& frame) { hear(frame); },
                      .on_close = [this](const std::string& reason) { lose(reason); }});
    channel_->send(Json::object({{"ask", "register"}, {"node", to_json(facts_)}}).dump());
    tick();
    beat();
    reports_ = thread_of([this](const std::stop_token& stop) { report(stop); });
  }

  // Notes what the body throws, which would end the process.
  template <typename Body>
  std::jthread thread_of(Body body) {
    return std::jthread([this, body = std::move(body)](const std::stop_token& stop) {
      try {
        body(stop);
      } catch (const std::exception& error) {
        note(error.what());
      }
    });
  }

  void lose(const std::string& reason) {
    lost_ = "the connection to the head was lost: " + reason;
    loop_.stop();
  }

  // A head that cannot be understood, or obeyed, is left and called again later.
  void hear(const std::string& frame) {
    try {
      obey(Json::parse(frame, "a message of the head"));
    } catch (const std::exception& error) {
      lose(error.what());
    }
  }

  void obey(const Json& message) {
    if (const Json* error = message.find("error")) return lose(error->as_string());
    if (const Json* facts = message.find("facts")) return write_files(cluster_facts_from_json(*facts));
    if (const Json* join = message.find("start")) return start(join->dump(), message.at("id").as_integer());
    if (const Json* round = message.find("check")) return check(round->as_integer());
    if (message.find("power_off")) power_off();
  }

  void power_off() const {
    if (options_.order.adopted)
      return note("stays on, although the head asked it to power off: dtrain did not start this machine");
    note("powers off on request of the head");
    power_off_machine();
  }

  // The query runs in a thread, because the driver of a broken GPU may block for long. Checks that arrive meanwhile get
  // the same answer.
  void check(std::int64_t round) {
    checks_.push_back({round, std::chrono::system_clock::now(), std::chrono::steady_clock::now()});
    if (checks_.size() > 1) return;
    try {
      check_ = thread_of([this](const std::stop_token&) { look_for_check(); });
    } catch (const std::system_error& error) {
      note(no_thread("that checks this machine", error).what());
      checks_.clear();
    }
  }

  // Where it fails, the head's time for the check runs out.
  void look_for_check() {
    try {
      net::InstanceMetadata metadata({.url = net::instance_metadata_url()});
      loop_.post([this, report = to_json(look_at_machine(notice_in(metadata)))] { send_report(report); });
    } catch (const std::exception& error) {
      note(error.what());
      loop_.post([this] { checks_.clear(); });
    }
  }

  // From time to time, and at once when EC2 announces the end of this machine.
  void report(const std::stop_token& stop) {
    net::InstanceMetadata metadata({.url = net::instance_metadata_url()});
    std::optional<net::EndNotice> told;
    std::chrono::steady_clock::time_point next{};
    while (!stop.stop_requested()) {
      const auto now = std::chrono::steady_clock::now();
      auto notice = notice_in(metadata, stop);
      if (notice != told || now >= next) {
        told = notice;
        next = now + kReport;
        send_own_report(std::move(notice));
      }
      sleep_unless_stopped(stop, kNotice);
    }
  }

  void send_own_report(std::optional<net::EndNotice> notice) {
    try {
      channel_->send(Json::object({{"report", to_json(look_at_machine(std::move(notice)))}}).dump());
    } catch (const std::exception& error) {
      note(error.what());
    }
  }

  void send_report(const Json& report) {
    const auto now = std::chrono::steady_clock::now();
    for (const Check& check : checks_) {
      const std::chrono::nanoseconds clock = check.clock.time_since_epoch(), took = now - check.begin;
      channel_->send(Json::object({{"checked", check.round},
                                   {"time_ns", std::int64_t{clock.count()}},
                                   {"took_ns", std::int64_t{took.count()}},
                                   {"report", report}})
                         .dump());
    }
    checks_.clear();
  }

  void write_files(ClusterFacts facts) {
    facts.gpus = facts_.gpus;
    const CompatFiles files = compat_files(facts);
    try {
      make_folder("/opt/deeplearning");
      write_file_atomic("/opt/deeplearning/workers", files.workers, 0644);
      write_file_atomic("/etc/profile.d/deeplearning.sh", files.profile, 0644);
      write_file_atomic("/etc/hosts", with_cluster_names(read_file("/etc/hosts"), files.names), 0644);
    } catch (const Error& error) {
      note(error.what());
    }
  }

  // In a thread of its own: joining may take an agent half a minute. The thread is joined once it has answered.
  void start(const std::string& join, std::int64_t number) {
    const auto place = starts_.emplace(starts_.end());
    try {
      *place = thread_of([this, place, join, number](const std::stop_token&) {
        answer_start(number, start_agent(join, options_.order.login));
        loop_.post([this, place] { starts_.erase(place); });
      });
    } catch (const std::system_error& error) {
      starts_.erase(place);
      answer_start(number, no_thread("that starts an agent", error).what());
    }
  }

  void answer_start(std::int64_t number, const std::string& error) {
    if (!error.empty()) note(error);
    channel_->send(Json::object({{"started", number}, {"error", error}}).dump());
  }

  void beat() {
    channel_->send(Json::object({{"alive", true}}).dump());
    loop_.after(kHeartbeat, [this] { beat(); });
  }

  void tick() {
    if (stop_signal() != 0) return loop_.stop();
    end_with_cluster(options_, limit_);
    loop_.after(kTick, [this] { tick(); });
  }

  void note(const std::string& line) const {
    if (options_.on_note) options_.on_note(line);
  }

  const NodeOptions& options_;
  const std::string head_;
  const NodeFacts facts_;
  TimeLimit& limit_;  // used by the loop
  net::Loop loop_;
  std::shared_ptr<net::Channel> channel_;
  struct Check {
    std::int64_t round = 0;
    std::chrono::system_clock::time_point clock{};
    std::chrono::steady_clock::time_point begin{};
  };
  std::vector<Check> checks_;  // checks that wait for the result of check_
  std::string lost_;
  // Last: joined before the other members are destroyed.
  std::list<std::jthread> starts_;
  std::jthread check_, reports_;
};

void serve_head_once(const NodeOptions& options, TimeLimit& limit) {
  net::InstanceMetadata metadata({.url = net::instance_metadata_url(), .deadline = 5s});
  NodeFacts facts = own_facts(metadata, options.order.head.empty());
  const std::string head = options.order.head.empty() ? facts.identity.address : options.order.head;
  const HeadEndpoint endpoint = request_join(options.order, head, metadata);
  if (endpoint.ends_in) limit.hear(*endpoint.ends_in, TimeLimit::Clock::now());
  publish_registry(options.folder, options.order.login,
                   {.cluster = options.order.cluster,
                    .address = head,
                    .port = endpoint.port,
                    .token = endpoint.token,
                    .shared_folder = options.order.shared_folder,
                    .adopted = options.order.adopted});
  HeadSession(options, head, std::move(facts), limit).run(endpoint);
}

}  // namespace

void run_node(const NodeOptions& options) {
  watch_stop_signals();
  std::string said;
  TimeLimit limit;
  while (stop_signal() == 0) {
    try {
      end_with_cluster(options, limit);
      serve_head_once(options, limit);
    } catch (const std::exception& error) {
      if (options.on_note && said != error.what()) options.on_note(error.what());
      said = error.what();
    }
    pause_unless_stopped(kPause);
  }
}

}  // namespace dtrain::cluster

#include <dtrain/base/files.hpp>
#include <dtrain/cluster/head.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/channel.hpp>
#include <dtrain/net/http_server.hpp>
#include <dtrain/net/instance_metadata.hpp>

#include "admission_port.hpp"
#include "head_state.hpp"
#include "own_registry.hpp"
#include "power_off.hpp"
#include "time_limit.hpp"

namespace dtrain::cluster {
namespace {

using namespace std::chrono_literals;
constexpr auto kTick = 200ms;
constexpr auto kFarewell = 3s;
// Time in which nodes that are not connected may come back, to be powered off with the others.
constexpr auto kLongestDown = 180s;
// Time after which a silent node counts as lost; nodes send a heartbeat every 5 s.
constexpr auto kSilence = 20s;
constexpr auto kLongestCheck = 20s;
constexpr std::size_t kTokenBytes = 32;
// A node that boots fetches one file at a time.
constexpr std::size_t kMostHttp = 256, kMostHttpOfAddress = 16;
constexpr const char* kAnnounced = "announced.json";
constexpr std::string_view kBundlePath = "/bundle/";

// The secret of the cluster, kept in a file so that a restarted head has the same.
std::string token_in(const Path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    write_file_atomic(file, to_hex(unpredictable_bytes(kTokenBytes)), kOwnerOnly);
  }
  return read_file(file);
}

Identity own_identity() {
  net::InstanceMetadata metadata({.url = net::instance_metadata_url(), .deadline = 5s});
  return identity_from(metadata.get("dynamic/instance-identity/document"));
}

Json refused(const std::string& reason) { return Json::object({{"error", reason}}); }

// Everything runs on one thread, that of the loop: HTTP requests, frames of channels, and timers, so nothing needs a
// lock. A session lives from the connection of its channel until that closes or is silent for too long. Callbacks name
// the session by its key, and requests that wait for a node hold its client weakly, so both may outlive the session:
// the answer is then dropped. A node that disconnects stays in the registry as lost and keeps its place if it comes
// again. A damaged message is answered with its error; it ends no session. The cluster's token is in a file, so a head
// that is started again serves the same nodes.
class Head {
 public:
  explicit Head(const HeadOptions& options)
      : options_(options),
        state_(own_identity(), options.order),
        token_(token_in(options.folder / "token")),
        proof_(failure_proof(options.order.admission)),
        listener_(loop_, state_.own().address, token_,
                  [this](std::shared_ptr<net::Channel> channel) { meet(channel); }),
        admission_(loop_, state_.own().address, options.order.admission,
                   [this](const Json& claim, const std::string& peer) { return join(claim, peer); }),
        server_(loop_, state_.own().address, options.order.port,
                [this](const net::HttpRequest& request) { return answer(request); },
                {.most_connections = kMostHttp, .most_of_address = kMostHttpOfAddress}) {
    const std::string& own = state_.own().address;
    publish_registry(options.folder, options.order.login,
                     {.cluster = options.order.cluster,
                      .address = own,
                      .port = listener_.port(),
                      .token = token_,
                      .shared_folder = options.order.shared_folder,
                      .adopted = options.order.adopted});
    recall_announced();
    note(fmt::format("head of cluster {}: {} answers on port {}", options.order.cluster, own, server_.port()));
  }

  void run() {
    watch_stop_signals();
    tick();
    loop_.run();
  }

 private:
  // A connection that proved the token: of a node once it has registered, otherwise of a client with requests.
  struct Session {
    std::shared_ptr<net::Channel> channel;
    std::string address;  // address of the registered node; empty: a client
    std::chrono::steady_clock::time_point heard = std::chrono::steady_clock::now();
  };
  using Key = net::Channel*;
  struct Round {
    std::weak_ptr<net::Channel> client;
    CheckRound answers;
  };

  // HTTP.

  net::HttpResponse answer(const net::HttpRequest& request) {
    if (request.method == "GET" && request.path.starts_with(kBundlePath)) return bundle(request.path);
    if (request.method == "POST" && request.path == "/failure") return failure(request);
    return {.status = 404};
  }

  net::HttpResponse bundle(const std::string& path) const {
    if (path.substr(kBundlePath.size()) != options_.order.bundle) return {.status = 404};
    return {.file = options_.folder / "incoming" / (options_.order.bundle + ".tar")};
  }

  net::HttpResponse failure(const net::HttpRequest& request) {
    auto found = parse_failure(request.body, proof_);
    if (!found || found->address != request.peer) return {.status = 403};
    found->at = std::chrono::system_clock::now();
    note(fmt::format("{} failed: {} ended with exit code {}", found->address, found->stage, found->exit_code));
    state_.registry().fail(std::move(*found));
    return {};
  }

  // Admission: for root of a machine that knows the admission secret.

  Json join(const Json& claim, const std::string& peer) {
    const auto [admission, is_news] = state_.admit(identity_from(claim.at("document").as_string()), peer);
    if (is_news) note("not admitted: " + admission.reason);
    if (!admission.admitted) return refused(admission.reason);
    Json answer = Json::object({{"port", std::int64_t{listener_.port()}}, {"token", token_}});
    if (const auto left = time_left(options_.folder)) answer["ends_in"] = std::int64_t{left->count()};
    return answer;
  }

  // Sessions.

  void meet(const std::shared_ptr<net::Channel>& channel) {
    const Key key = channel.get();
    sessions_[key].channel = channel;
    channel->listen({.on_frame = [this, key](const std::string& frame) { hear(key, frame); },
                     .on_close = [this, key](const std::string&) { leave(key); }});
  }

  void leave(Key key) {
    const auto session = sessions_.extract(key);
    if (session.empty() || session.mapped().address.empty()) return;
    const std::string& address = session.mapped().address;
    for (const auto& start : starts_.take_all_of(key))
      tell(start, start.host + ": its node was lost before its agent had started");
    if (channel_of(address)) return;  // the node has connected again meanwhile
    note(fmt::format("lost {}", address));
    state_.registry().lose(address, std::chrono::system_clock::now());
    leave_rounds(address);
  }

  void hear(Key key, const std::string& frame) {
    Session& session = sessions_[key];
    session.heard = std::chrono::steady_clock::now();
    try {
      const Json message = Json::parse(frame, "a message to the head");
      if (const Json* started = message.find("started")) return answer_start(started->as_integer(), message);
      if (const Json* round = message.find("checked")) return hear_checked(session, round->as_integer(), message);
      if (const Json* report = message.find("report")) return keep_report(session, *report);
      const Json* ask = message.find("ask");
      if (!ask) return;
      const std::string& word = ask->as_string();
      if (word == "register") return register_node(session, node_facts_from_json(message.at("node")));
      if (word == "start") return start(session, message);
      if (word == "check") return check(session, message);
      session.channel->send(reply_to(word, message).dump());
    } catch (const DataError& error) {
      session.channel->send(refused(error.what()).dump());
    }
  }

  Json reply_to(const std::string& word, const Json& message) {
    if (word == "list") return state_.list();
    if (word == "announce") return announce(message);
    if (word == "power-off") return power_off(message.at("host").as_string());
    if (word == "down") return down();
    return refused(fmt::format("the head does not know '{}'", word));
  }

  // The token is known to the programs of all nodes: it does not say which node speaks.
  void register_node(Session& session, NodeFacts facts) {
    const Admission admission = state_.may_register(facts.identity, session.channel->peer_address());
    if (!admission.admitted) return session.channel->send(refused(admission.reason).dump());
    session.address = facts.identity.address;
    note(fmt::format("{} registered: {} ({}, {})", facts.name, session.address, facts.identity.type,
                     facts.identity.zone));
    const bool is_new = state_.register_node(std::move(facts), std::chrono::system_clock::now());
    if (down_until_) return send_away(session);
    if (is_new) return send_facts_to_all();
    send_facts(session);
  }

  void send_facts(const Session& session) {
    if (session.address.empty()) return;
    session.channel->send(Json::object({{"facts", to_json(state_.facts())}}).dump());
  }
  void send_facts_to_all() {
    for (const auto& [key, session] : sessions_) send_facts(session);
  }

  std::shared_ptr<net::Channel> channel_of(const std::string& address) const {
    for (const auto& [key, session] : sessions_) {
      if (session.address == address) return session.channel;
    }
    return nullptr;
  }

  Json announce(const Json& message) {
    state_.announce(message);
    keep_announced();
    send_facts_to_all();
    return Json::object({{"ok", true}});
  }

  // After a restart of this machine its workers come back by themselves, also while no user announces them.
  void keep_announced() {
    try {
      write_file_atomic(options_.folder / kAnnounced, state_.announced().dump() + "\n", kOwnerOnly);
    } catch (const Error& error) {
      note(error.what());
    }
  }
  void recall_announced() {
    const Path file = options_.folder / kAnnounced;
    std::error_code none;
    if (!std::filesystem::exists(file, none)) return;
    try {
      state_.announce(Json::parse(read_file(file), file.string()));
    } catch (const Error& error) {
      note(error.what());
    }
  }

  Json power_off(const std::string& host) {
    const auto address = state_.remove(host);
    if (!address) return refused(no_node(host));
    keep_announced();
    if (const auto channel = channel_of(*address)) channel->send(Json::object({{"power_off", true}}).dump());
    send_facts_to_all();
    return Json::object({{"ok", true}});
  }

  // All nodes, those that are not connected once they come, and this machine after them.
  Json down() {
    if (options_.order.adopted) {
      return refused(fmt::format("cluster {} was adopted, and dtrain powers off no machine that it did not start",
                                 options_.order.cluster));
    }
    if (!down_until_) {
      note("all machines power off on request");
      down_until_ = std::chrono::steady_clock::now() + kLongestDown;
    }
    for (const auto& [key, session] : sessions_) send_away(session);
    return Json::object({{"ok", true}});
  }

  void send_away(const Session& session) {
    if (session.address.empty() || session.address == state_.own().address) return;
    session.channel->send(Json::object({{"power_off", true}}).dump());
    state_.send_away(session.address);
  }

  void go_down_after_the_nodes() {
    if (!down_until_ || goes_down_) return;
    const std::vector<std::string> there = state_.still_there();
    if (!there.empty() && std::chrono::steady_clock::now() < *down_until_) return;
    if (!there.empty()) note("not powered off, because they were not reached: " + dtrain::join(there, ", "));
    goes_down_ = true;
    loop_.after(kFarewell, [] { power_off_machine(); });  // by then the last answers have left this machine
  }

  std::string no_node(const std::string& host) const {
    return fmt::format("{}: no node of cluster {}", host, options_.order.cluster);
  }

  // Requests that nodes answer.

  // The node answers with this head's number for the start; the client gets its own id back.
  void start(const Session& client, const Json& message) {
    const std::string& host = message.at("host").as_string();
    const NodeEntry* node = state_.registry().find(host);
    const auto channel = node ? channel_of(node->facts.identity.address) : nullptr;
    if (!channel) {
      const std::string why = node ? fmt::format("{}: its node is not connected to the head", host) : no_node(host);
      return client.channel->send(Json::object({{"id", message.at("id")}, {"error", why}}).dump());
    }
    const std::int64_t number = starts_.add({channel.get(), host, client.channel, message.at("id")});
    channel->send(Json::object({{"start", message.at("join")}, {"id", number}}).dump());
  }

  void answer_start(std::int64_t number, const Json& message) {
    if (const auto start = starts_.take(number)) tell(*start, message.at("error").as_string());
  }
  static void tell(const ForwardedStarts::Start& start, const std::string& error) {
    Json answer = Json::object({{"id", start.id}});
    if (!error.empty()) answer["error"] = error;
    if (const auto client = start.client.lock()) client->send(answer.dump());
  }

  // Asks all nodes at once. The client is answered after the last node, or when the time is over.
  void check(const Session& client, const Json& message) {
    const std::int64_t number = ++last_round_;
    Round& round = rounds_[number];
    round.client = client.channel;
    for (const NodeEntry& node : state_.registry().nodes()) {
      const auto channel = channel_of(node.facts.identity.address);
      if (!channel) continue;
      round.answers.ask(node.facts.identity.instance_id, nanoseconds_now());
      channel->send(Json::object({{"check", number}}).dump());
    }
    const std::chrono::seconds time(message.at("seconds").as_integer());
    loop_.after(round.answers.is_over() ? 0ms : std::min<std::chrono::milliseconds>(time, kLongestCheck),
                [this, number] { end_round(number); });
  }

  void hear_checked(const Session& session, std::int64_t number, const Json& message) {
    const auto round = rounds_.find(number);
    const NodeEntry* node = state_.registry().find(session.address);
    keep_report(session, message.at("report"));
    if (round == rounds_.end() || !node) return;
    round->second.answers.hear(node->facts.identity.instance_id, message, nanoseconds_now());
    if (round->second.answers.is_over()) end_round(number);
  }

  void leave_rounds(const std::string& address) {
    const NodeEntry* node = state_.registry().find(address);
    if (!node) return;
    for (auto& [number, round] : rounds_) {
      round.answers.lose(node->facts.identity.instance_id);
      if (round.answers.is_over()) loop_.post([this, number = number] { end_round(number); });
    }
  }

  void end_round(std::int64_t number) {
    const auto round = rounds_.extract(number);
    if (round.empty()) return;
    Json answer = state_.list();
    answer["reports"] = round.mapped().answers.reports();
    if (const auto client = round.mapped().client.lock()) client->send(answer.dump());
  }

  void keep_report(const Session& session, const Json& report) {
    if (!session.address.empty()) state_.registry().report(session.address, report, std::chrono::system_clock::now());
  }

  static std::int64_t nanoseconds_now() {
    return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  }

  void tick() {
    if (stop_signal() != 0) return loop_.stop();
    const auto now = std::chrono::steady_clock::now();
    std::vector<Key> silent;
    for (const auto& [key, session] : sessions_) {
      if (!session.address.empty() && now - session.heard > kSilence) silent.push_back(key);
    }
    for (const Key key : silent) {
      state_.was_silent(sessions_.at(key).address);
      leave(key);
    }
    go_down_after_the_nodes();
    loop_.after(kTick, [this] { tick(); });
  }

  void note(const std::string& line) const {
    if (options_.on_note) options_.on_note(line);
  }

  const HeadOptions& options_;
  HeadState state_;
  const std::string token_, proof_;
  net::Loop loop_;
  std::map<Key, Session> sessions_;
  ForwardedStarts starts_;
  std::map<std::int64_t, Round> rounds_;
  std::int64_t last_round_ = 0;
  std::optional<std::chrono::steady_clock::time_point> down_until_;  // set: all machines power off
  bool goes_down_ = false;                                           // this one too
  net::Listener listener_;
  AdmissionPort admission_;
  net::HttpServer server_;
};

}  // namespace

void run_head(const HeadOptions& options) { Head(options).run(); }

}  // namespace dtrain::cluster

#include <dtrain/cluster/head.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/sealed.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/cluster/admission.hpp>
#include <dtrain/cluster/compat_files.hpp>
#include <dtrain/cluster/fleet.hpp>
#include <dtrain/cluster/registry.hpp>
#include <dtrain/net/addresses.hpp>
#include <dtrain/net/channel.hpp>
#include <dtrain/net/http_door.hpp>

#include "check_round.hpp"
#include "metadata.hpp"
#include "own_registry.hpp"

namespace dtrain::cluster {
namespace {

using namespace std::chrono_literals;
constexpr auto kTick = 200ms;
// A node says that it lives every 5 s.
constexpr auto kSilence = 20s;
constexpr auto kLongestCheck = 20s;
constexpr std::size_t kTokenBytes = 32;
constexpr unsigned kOwnerOnly = 0600;
constexpr std::string_view kBundlePath = "/bundle/";

// The cluster's secret, which a head that starts again finds again.
std::string token_in(const Path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    write_file_atomic(file, to_hex(unpredictable_bytes(kTokenBytes)), kOwnerOnly);
  }
  return read_file(file);
}

Json refused(const std::string& reason) { return Json::object({{"error", reason}}); }

class Head {
 public:
  explicit Head(const HeadOptions& options)
      : options_(options),
        own_(identity_from(Metadata().get("dynamic/instance-identity/document"))),
        token_(token_in(options.folder / "token")),
        listener_(loop_, net::kAnyAddress, token_, [this](std::shared_ptr<net::Channel> channel) { meet(channel); }),
        door_(loop_, net::kAnyAddress, options.order.port,
              [this](const net::DoorRequest& request) { return answer(request); }) {
    publish_registry(
        options.folder, options.order.login,
        {.cluster = options.order.cluster, .address = own_.address, .port = listener_.port(), .token = token_});
    note(fmt::format("head of cluster {}: {} answers on port {}", options.order.cluster, own_.address, door_.port()));
  }

  void run() {
    watch_stop_signals();
    tick();
    loop_.run();
  }

 private:
  // Somebody who knows the token: a node once it registered, else somebody with a question.
  struct Guest {
    std::shared_ptr<net::Channel> channel;
    std::string address;  // of a node that registered; empty: none did
    std::chrono::steady_clock::time_point heard = std::chrono::steady_clock::now();
  };
  using Key = net::Channel*;
  struct Round {
    std::weak_ptr<net::Channel> asker;
    CheckRound answers;
  };

  // The door.

  net::DoorAnswer answer(const net::DoorRequest& request) {
    if (request.method == "GET" && request.path.starts_with(kBundlePath)) return bundle(request.path);
    if (request.method == "POST" && request.path == "/join") return join(request);
    if (request.method == "POST" && request.path == "/failure") return failure(request);
    return {.status = 404};
  }

  net::DoorAnswer bundle(const std::string& path) const {
    if (path.substr(kBundlePath.size()) != options_.order.bundle) return {.status = 404};
    return {.file = options_.folder / "incoming" / (options_.order.bundle + ".tar")};
  }

  net::DoorAnswer join(const net::DoorRequest& request) {
    try {
      const Json claim = Json::parse(request.body, "a request to join");
      const Identity node = identity_from(claim.at("document").as_string());
      const Admission admission = admit(node, request.peer, own_, announced_);
      if (!admission.admitted) {
        if (waiting_[node.instance_id] != admission.reason) note("not admitted: " + admission.reason);
        waiting_[node.instance_id] = admission.reason;
        return {.status = 403, .body = admission.reason};
      }
      waiting_.erase(node.instance_id);
      const KeyHalf key;
      const std::string sealed = key.seal(token_, claim.at("key").as_string());
      return {.body = Json::object(
                          {{"port", std::int64_t{listener_.port()}}, {"key", key.public_part()}, {"sealed", sealed}})
                          .dump()};
    } catch (const DataError& error) {
      return {.status = 403, .body = error.what()};
    }
  }

  net::DoorAnswer failure(const net::DoorRequest& request) {
    auto found = parse_failure(request.body);
    if (!found || found->address != request.peer) return {.status = 403};
    found->at = std::chrono::system_clock::now();
    note(fmt::format("{} failed: {} ended with exit code {}", found->address, found->stage, found->exit_code));
    registry_.fail(std::move(*found));
    return {};
  }

  // Channels.

  void meet(const std::shared_ptr<net::Channel>& channel) {
    const Key key = channel.get();
    guests_[key].channel = channel;
    channel->listen({.on_frame = [this, key](const std::string& frame) { hear(key, frame); },
                     .on_close = [this, key](const std::string&) { leave(key); }});
  }

  void leave(Key key) {
    const auto guest = guests_.extract(key);
    if (guest.empty() || guest.mapped().address.empty()) return;
    const std::string& address = guest.mapped().address;
    if (channel_of(address)) return;  // it has come again meanwhile
    note(fmt::format("lost {}", address));
    registry_.lose(address, std::chrono::system_clock::now());
  }

  void hear(Key key, const std::string& frame) {
    Guest& guest = guests_[key];
    guest.heard = std::chrono::steady_clock::now();
    try {
      const Json message = Json::parse(frame, "a message to the head");
      if (const Json* started = message.find("started")) return tell_started(started->as_integer(), message);
      if (const Json* round = message.find("checked")) return hear_checked(guest, round->as_integer(), message);
      const Json* ask = message.find("ask");
      if (!ask) return;
      const std::string& word = ask->as_string();
      if (word == "register") return take_in(guest, node_facts_from_json(message.at("node")));
      if (word == "start") return start(guest, message);
      if (word == "check") return check(guest, message);
      guest.channel->send(reply_to(word, message).dump());
    } catch (const DataError& error) {
      guest.channel->send(refused(error.what()).dump());
    }
  }

  Json reply_to(const std::string& word, const Json& message) {
    if (word == "list") return list();
    if (word == "announce") return announce(message);
    if (word == "power-off") return power_off(message.at("host").as_string());
    return refused(fmt::format("the head does not know '{}'", word));
  }

  void take_in(Guest& guest, NodeFacts facts) {
    const bool is_new = !registry_.find(facts.identity.address);
    guest.address = facts.identity.address;
    if (launch_template_.empty()) launch_template_ = facts.launch_template;
    note(
        fmt::format("{} registered: {} ({}, {})", facts.name, guest.address, facts.identity.type, facts.identity.zone));
    registry_.join(std::move(facts), std::chrono::system_clock::now());
    if (is_new) return tell_all();
    tell(guest);
  }

  ClusterFacts facts() const {
    return {.cluster = options_.order.cluster,
            .region = options_.order.region,
            .head = own_.address,
            .workers = registry_.addresses(),
            .shared_folder = options_.order.shared_folder,
            .launch_template = launch_template_,
            .elastic_tag = elastic_tag(options_.order.cluster)};
  }

  void tell(Guest& guest) {
    if (!guest.address.empty()) guest.channel->send(Json::object({{"facts", to_json(facts())}}).dump());
  }
  void tell_all() {
    for (auto& [key, guest] : guests_) tell(guest);
  }

  std::shared_ptr<net::Channel> channel_of(const std::string& address) const {
    for (const auto& [key, guest] : guests_) {
      if (guest.address == address) return guest.channel;
    }
    return nullptr;
  }

  // The node answers with the number that this head gave; the asker's own goes back with it.
  void start(const Guest& asker, const Json& message) {
    const std::string& host = message.at("host").as_string();
    const NodeEntry* node = registry_.find(host);
    const auto channel = node ? channel_of(node->facts.identity.address) : nullptr;
    if (!channel) {
      const std::string why = node ? fmt::format("{}: its node is not connected to the head", host)
                                   : fmt::format("{}: no node of cluster {}", host, options_.order.cluster);
      return asker.channel->send(Json::object({{"id", message.at("id")}, {"error", why}}).dump());
    }
    starts_[++last_start_] = {asker.channel, message.at("id")};
    channel->send(Json::object({{"start", message.at("join")}, {"id", last_start_}}).dump());
  }

  void tell_started(std::int64_t number, const Json& message) {
    const auto start = starts_.extract(number);
    if (start.empty()) return;
    Json answer = Json::object({{"id", start.mapped().second}});
    if (const std::string& error = message.at("error").as_string(); !error.empty()) answer["error"] = error;
    if (const auto asker = start.mapped().first.lock()) asker->send(answer.dump());
  }

  // All at the same time; the answer goes back with the last of theirs, or when the time is over.
  void check(const Guest& asker, const Json& message) {
    const std::int64_t number = ++last_round_;
    Round& round = rounds_[number];
    round.asker = asker.channel;
    for (const NodeEntry& node : registry_.nodes()) {
      const auto channel = channel_of(node.facts.identity.address);
      if (!channel) continue;
      round.answers.ask(node.facts.identity.instance_id, nanoseconds_now());
      channel->send(Json::object({{"check", number}}).dump());
    }
    const std::chrono::seconds time(message.at("seconds").as_integer());
    loop_.after(round.answers.is_over() ? 0ms : std::min<std::chrono::milliseconds>(time, kLongestCheck),
                [this, number] { end_round(number); });
  }

  void hear_checked(const Guest& guest, std::int64_t number, const Json& message) {
    const auto round = rounds_.find(number);
    const NodeEntry* node = registry_.find(guest.address);
    if (round == rounds_.end() || !node) return;
    round->second.answers.hear(node->facts.identity.instance_id, message, nanoseconds_now());
    if (round->second.answers.is_over()) end_round(number);
  }

  void end_round(std::int64_t number) {
    const auto round = rounds_.extract(number);
    if (round.empty()) return;
    Json answer = list();
    answer["reports"] = round.mapped().answers.reports();
    if (const auto asker = round.mapped().asker.lock()) asker->send(answer.dump());
  }

  static std::int64_t nanoseconds_now() {
    return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  }

  Json list() const {
    Json nodes = Json::array(), failures = Json::array(), waiting = Json::array();
    for (std::size_t i = 0; i < registry_.nodes().size(); ++i) {
      const NodeEntry& entry = registry_.nodes()[i];
      Json node = to_json(entry.facts);
      node["connected"] = entry.connected;
      node["since"] = seconds_of(entry.since);
      nodes.push_back(std::move(node));
    }
    for (const NodeFailure& failure : registry_.failures()) {
      failures.push_back(Json::object({{"address", failure.address},
                                       {"stage", failure.stage},
                                       {"exit_code", failure.exit_code},
                                       {"log", failure.log},
                                       {"at", seconds_of(failure.at)}}));
    }
    for (const auto& [id, reason] : waiting_) {
      waiting.push_back(Json::object({{"instance_id", id}, {"reason", reason}}));
    }
    return Json::object({{"schema", "dtrain.cluster-nodes/1"},
                         {"facts", to_json(facts())},
                         {"nodes", std::move(nodes)},
                         {"failures", std::move(failures)},
                         {"waiting", std::move(waiting)}});
  }

  static std::int64_t seconds_of(std::chrono::system_clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
  }

  // Whoever is not in the account any more is no node any more.
  Json announce(const Json& message) {
    announced_.clear();
    for (const auto& [id, instance] : message.at("instances").as_object()) {
      announced_[id] = instance.at("address").as_string();
      registry_.rename(id, instance.at("name").as_string());
    }
    if (const Json* id = message.find("launch_template")) launch_template_ = id->as_string();
    const std::vector<NodeEntry> known = registry_.nodes();
    for (const NodeEntry& node : known) {
      const Identity& identity = node.facts.identity;
      if (identity.instance_id != own_.instance_id && !announced_.contains(identity.instance_id) && !node.connected) {
        registry_.forget(identity.address);
      }
    }
    tell_all();
    return Json::object({{"ok", true}});
  }

  Json power_off(const std::string& host) {
    const NodeEntry* node = registry_.find(host);
    if (!node) return refused(fmt::format("{}: no node of cluster {}", host, options_.order.cluster));
    const std::string address = node->facts.identity.address;
    if (const auto channel = channel_of(address)) channel->send(Json::object({{"power_off", true}}).dump());
    announced_.erase(node->facts.identity.instance_id);
    registry_.forget(address);
    tell_all();
    return Json::object({{"ok", true}});
  }

  void tick() {
    if (stop_signal() != 0) return loop_.stop();
    const auto now = std::chrono::steady_clock::now();
    std::vector<Key> silent;
    for (const auto& [key, guest] : guests_) {
      if (!guest.address.empty() && now - guest.heard > kSilence) silent.push_back(key);
    }
    for (const Key key : silent) leave(key);
    loop_.after(kTick, [this] { tick(); });
  }

  void note(const std::string& line) const {
    if (options_.on_note) options_.on_note(line);
  }

  const HeadOptions& options_;
  const Identity own_;
  const std::string token_;
  std::string launch_template_;
  std::map<std::string, std::string> announced_;  // {instance id: address}
  std::map<std::string, std::string> waiting_;    // {instance id: why it is not admitted}
  Registry registry_;
  net::Loop loop_;
  std::map<Key, Guest> guests_;
  std::map<std::int64_t, std::pair<std::weak_ptr<net::Channel>, Json>> starts_;  // that were passed on
  std::int64_t last_start_ = 0;
  std::map<std::int64_t, Round> rounds_;
  std::int64_t last_round_ = 0;
  net::Listener listener_;
  net::HttpDoor door_;
};

}  // namespace

void run_head(const HeadOptions& options) { Head(options).run(); }

}  // namespace dtrain::cluster

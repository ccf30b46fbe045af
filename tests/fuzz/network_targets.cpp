// What other machines send: peers of a job, agents, nodes, ssh servers, clients of the small HTTP server.
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/checkup.hpp>
#include <dtrain/cluster/compat_files.hpp>
#include <dtrain/cluster/registry.hpp>
#include <dtrain/elastic/admission_check.hpp>
#include <dtrain/elastic/host_file.hpp>
#include <dtrain/elastic/protocol.hpp>
#include <dtrain/launcher/agent_registry.hpp>
#include <dtrain/net/http_server.hpp>
#include <dtrain/net/loop_thread.hpp>

#include "elastic/agent/wire.hpp"
#include "fuzz.hpp"
#include "net/server/frames.hpp"
#include "net/ssh/config.hpp"
#include "net/ssh/sftp_packet.hpp"

namespace dtrain::fuzz {
namespace {

// A text that is accepted can be written again.
template <typename Read>
std::function<void(const std::string&)> json_reader(Read read) {
  return [read](const std::string& input) { to_json(read(Json::parse(input, "input"))).dump(); };
}

// The first byte says how the rest is torn on its way.
void read_frames(const std::string& input) {
  if (input.empty()) return;
  const std::size_t piece = 1 + static_cast<unsigned char>(input[0]) % 64;
  net::FrameReader reader;
  for (std::size_t at = 1; at < input.size(); at += piece) {
    reader.add(std::string_view(input).substr(at, piece));
    while (reader.next()) {
    }
  }
}

void read_agent_frame(const std::string& input) {
  const elastic::AgentFrame frame = elastic::decode(input);
  (void)elastic::event_of_host("host", frame);
  switch (frame.tag) {
    case elastic::Tag::join:
      to_json(elastic::join_request_from_json(Json::parse(frame.body, "join"))).dump();
      break;
    case elastic::Tag::exited:
      to_json(elastic::exited_from_json(Json::parse(frame.body, "exited"))).dump();
      break;
    case elastic::Tag::say:
      to_json(elastic::from_worker_from_json(Json::parse(frame.body, "message"))).dump();
      break;
    case elastic::Tag::start:
    case elastic::Tag::alive:
      elastic::number_of(frame.body);
      break;
    default:
      break;
  }
}

// One server for all inputs. A request is over when its connection is.
class HttpTarget {
 public:
  void send(const std::string& input) {
    const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw Error("the server takes no connection");
    (void)!::send(socket.get(), input.data(), input.size(), MSG_NOSIGNAL);
    ::shutdown(socket.get(), SHUT_WR);
    for (char piece[4096]; ::recv(socket.get(), piece, sizeof piece, 0) > 0;) {
    }
  }

 private:
  net::LoopThread thread_;
  net::HttpServer server_{thread_.loop(), "127.0.0.1", 0, [](const net::HttpRequest& request) {
                            return net::HttpResponse{.status = 200,
                                                     .body = request.method + request.path + request.body};
                          }};
};

std::string worker_message() {
  return to_json(elastic::FromWorker(
                     elastic::Progress{.generation = 3, .phase = elastic::Phase::computing, .position = {}}))
      .dump();
}

std::vector<std::string> messages_to_workers() {
  const elastic::Member member{.worker = 1, .host = "h1", .slot = 0, .data = {.address = "10.0.0.1", .port = 4000}};
  return {to_json(elastic::ToWorker(elastic::Prepare{.generation = 2, .members = {member}})).dump(),
          to_json(elastic::ToWorker(elastic::Commit{.generation = 2, .boundary = elastic::Boundary::step})).dump(),
          to_json(elastic::ToWorker(elastic::Stop{.save = true, .reason = "x"})).dump()};
}

std::vector<std::string> messages_of_workers() {
  return {worker_message(),
          to_json(elastic::FromWorker(elastic::Left{.how = elastic::Left::How::failed, .reason = "x", .position = {}}))
              .dump(),
          to_json(elastic::FromWorker(elastic::Report{Json::object({{"event", "step"}})})).dump()};
}

std::vector<std::string> agent_frames() {
  const elastic::JoinRequest join{.host = "h1", .tree = "00ff", .term = 2, .port = 4000};
  return {elastic::encode(elastic::Tag::join, 0, to_json(join).dump()),
          elastic::encode(elastic::Tag::exited, 4, to_json(elastic::Exited{1, 9, {"last words"}}).dump()),
          elastic::encode(elastic::Tag::say, 4, worker_message()),
          elastic::encode(elastic::Tag::alive, 0, "17"),
          elastic::encode(elastic::Tag::notice, 0, R"({"leave": true, "reason": "spot"})"),
          elastic::encode(elastic::Tag::output, 4, "a line\n")};
}

std::vector<Target> job_targets() {
  const std::string frame = "hello";
  return {
      {"frames", {fmt::format("\3{}{}{}", net::frame_header(frame.size()), frame, net::frame_header(0))}, read_frames},
      {"to-worker", messages_to_workers(), json_reader(elastic::to_worker_from_json)},
      {"from-worker", messages_of_workers(), json_reader(elastic::from_worker_from_json)},
      {"agent-frame", agent_frames(), read_agent_frame},
      {"welcome",
       {to_json(elastic::Welcome{.environment = {"A=b"}, .folder = "/f", .document = Json::object({}), .term = 1})
            .dump()},
       json_reader(elastic::welcome_from_json)},
      {"election",
       {to_json(elastic::ElectionResult{.term = 3,
                                        .voter_sets = {{.generation = 1, .voters = {}, .members = {}}},
                                        .tiebreakers = {2},
                                        .granted_by = {"a"}})
            .dump()},
       json_reader(elastic::election_result_from_json)},
      {"admission-check",
       {to_json(elastic::AdmissionCheckResult{.failure = "no disk", .last_lines = {"x"}, .note = {}, .health = {}})
            .dump()},
       json_reader(elastic::admission_check_result_from_json)},
      {"host-file",
       {"# hosts\nh1\nuser@h2:2222 slots=4\r\n\n[::1]:22\n10.0.0.1"},
       [](const std::string& input) { elastic::parse_host_file(input, 1); }},
  };
}

std::vector<Target> cluster_targets(const Path& folder) {
  return {
      {"node-facts",
       {to_json(cluster::NodeFacts{.identity = {.account = "123456789012",
                                                .region = "eu-west-1",
                                                .instance_id = "i-0123456789abcdef0",
                                                .address = "10.0.0.3",
                                                .zone = "eu-west-1a",
                                                .type = "g5.xlarge"},
                                   .name = "w0003",
                                   .gpus = 8})
            .dump()},
       json_reader(cluster::node_facts_from_json)},
      {"cluster-facts",
       {to_json(cluster::ClusterFacts{
                    .cluster = "demo", .region = "eu-west-1", .head = "10.0.0.1", .workers = {"10.0.0.2"}})
            .dump()},
       json_reader(cluster::cluster_facts_from_json)},
      {"checkup",
       {to_json(cluster::Checkup{.devices = 1, .gpu_error = "none"}).dump()},
       json_reader(cluster::checkup_from_json)},
      {"nvidia-smi",
       {"0, NVIDIA A10G, 580.95.05, 31, 23028, 0\n"},
       [](const std::string& input) { (void)cluster::gpus_in(input); }},
      {"node-failure",
       {"proof 10.0.0.3 bundle 22\nits log\n"},
       [](const std::string& input) { (void)cluster::parse_failure(input, "proof"); }},
      {"registry-file",
       {R"({"schema": "dtrain.registry/1", "cluster": "demo", "address": "10.0.0.1", "port": 7172, "token": "00"})"},
       [folder](const std::string& input) {
         write_quickly(folder / "registry.json", input);
         (void)launcher::read_agent_registry(folder / "registry.json");
       }},
  };
}

std::vector<Target> ssh_targets(const Path& folder) {
  using net::ssh::Packer;
  const std::string attributes = Packer().u32(15).u64(3).u64(0).u32(0100644).u32(1).u32(2).bytes();
  const std::string names = Packer().u32(2).text("a").text("-rw a").raw(attributes).text("..").text("").u32(0).bytes();
  return {
      {"sftp-attributes", {attributes}, [](const std::string& input) { (void)net::ssh::parse_attributes(input); }},
      {"sftp-names", {names}, [](const std::string& input) { (void)net::ssh::parse_names(input); }},
      {"ssh-config",
       {"Host gpu* !gpu9\n User=ann\n IdentityFile \"~/k %r\"\nHost *\n Port 22\n ProxyJump a@b:7,c\n ProxyCommand nc "
        "%h %p\n"
        "Match all\n UserKnownHostsFile ~/a ${HOME}/b\n StrictHostKeyChecking yes\n HostKeyAlias %%\n"},
       [folder](const std::string& input) {
         // Names in Include lead out of the folder, where what stands there is no part of the input.
         std::string lower = input;
         std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
         if (lower.find("include") != lower.npos) return;
         write_quickly(folder / "ssh_config", input);
         (void)net::ssh::read_config({folder / "ssh_config"}, {.host = "gpu1"});
       }},
      {"ssh-resolved",
       {"host gpu1\nuser ann\nhostname real\nport 23\nproxycommand nc %h %p\nidentityfile ~/k\ncertificatefile /c\n"
        "userknownhostsfile /a /b\nstricthostkeychecking true\nciphers x,y\naddressfamily inet\nidentityagent none\n"},
       [](const std::string& input) { (void)net::ssh::parse_resolved(input, "port 22\n", {.host = "gpu1"}); }},
  };
}

}  // namespace

std::vector<Target> network_targets(const Path& folder) {
  std::vector<Target> all = job_targets();
  for (auto more : {cluster_targets(folder), ssh_targets(folder)}) all.insert(all.end(), more.begin(), more.end());
  const auto server = std::make_shared<HttpTarget>();
  all.push_back({"http-request",
                 {"GET /x HTTP/1.1\r\nHost: h\r\n\r\n", "POST /join HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody"},
                 [server](const std::string& input) { server->send(input); }});
  return all;
}

}  // namespace dtrain::fuzz

// Real processes for the tests of agents: `agent COMMAND...` joins as its standard input says and starts COMMAND as its
// workers; `worker` is such a command that prints what it is told and does what a test asks; `coordinator FOLDER
// COMMAND...` keeps a job of one host with one worker.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string_view>

#include <dtrain/base/stack_dump.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/elastic/agent.hpp>
#include <dtrain/elastic/network_agent_pool.hpp>
#include <dtrain/launcher/local_launcher.hpp>
#include <dtrain/net/channel.hpp>

using namespace dtrain;

namespace {

int be_agent(std::vector<std::string> worker_command) {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  const elastic::AgentOrder order = elastic::agent_order_from_json(Json::parse(text, "standard input"));
  const auto look = [folder = Path(order.job_folder)] {
    const Json leader = Json::parse(read_file(folder / "leader.json"), "leader.json");
    return elastic::AgentOptions::FolderNews{.leader = elastic::leader_from_json(leader), .job_over = false};
  };
  elastic::run_agent({.order = order, .worker_command = std::move(worker_command), .look_into_folder = look});
  return 0;
}

void print(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// Prints the document and the address of its job, then every message; a Leave is answered with Left.
int be_worker() {
  dump_stacks_on_signal();
  net::Loop loop;
  const auto channel = net::adopt_channel(loop, FileDescriptor(elastic::kWorkerSocket));
  bool first = true;
  channel->listen(
      {[&](const std::string& frame) {
         const Json json = Json::parse(frame, "a frame");
         if (std::exchange(first, false)) {
           const elastic::WorkerJob job = elastic::worker_job_from_json(json);
           print("job " + job.host + " " + std::to_string(job.slot) + " " + job.address + " " + job.document.dump());
           channel->send(
               elastic::to_json(elastic::FromWorker(elastic::Hello{.pid = 7, .data = {}, .fingerprint = ""})).dump());
           return;
         }
         print("told " + frame);
         if (json.at("type").as_string() != "leave") return;
         elastic::Left left{.how = elastic::Left::How::removed, .reason = "asked", .position = {}};
         channel->send(elastic::to_json(elastic::FromWorker(left)).dump());
         channel->close_after_sending();
       },
       [&](const std::string&) { loop.stop(); }});
  loop.run();
  return 0;
}

int be_coordinator(const Path& folder, std::vector<std::string> worker_command) {
  worker_command.insert(worker_command.begin(), {"/proc/self/exe", "agent"});
  net::Loop loop;
  launcher::LocalLauncher launcher({.command = std::move(worker_command)});
  elastic::NetworkAgentPool* pool = nullptr;
  elastic::NetworkAgentPoolOptions options{.token = "token", .job_folder = folder, .job = {}};
  options.grace = std::chrono::milliseconds(300);  // the worker has nothing to save
  elastic::NetworkAgentPool agent_pool(loop, launcher, options, [&](const elastic::AgentPoolEvent& event) {
    if (std::holds_alternative<elastic::HostUp>(event)) pool->start_worker("w1", 0, 1);
  });
  pool = &agent_pool;
  loop.post([&] { agent_pool.start_host({.name = "w1", .user = "", .host = "w1"}); });
  loop.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.at(0) == "agent") return be_agent({words.begin() + 1, words.end()});
    if (words.at(0) == "worker") return be_worker();
    return be_coordinator(words.at(1), {words.begin() + 2, words.end()});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

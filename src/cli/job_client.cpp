#include "job_client.hpp"

#include <fmt/format.h>

#include <future>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/net/channel.hpp>

#include "loop_thread.hpp"
#include "process_facts.hpp"

namespace dtrain::cli {
namespace {

using namespace std::chrono_literals;
constexpr auto kConnectDeadline = 5s, kAnswerDeadline = 20s;

CoordinatorFile running_coordinator(const JobFolder& folder) {
  const auto file = read_coordinator(folder);
  const std::string where = folder.path.string();
  if (!file) {
    throw UsageError(fmt::format("{}: no job there", where),
                     "--job-dir names the folder that `dtrain train --job-dir` was given");
  }
  if (file->over()) {
    throw Error(fmt::format("{}: the job is over: {}", where, file->ended),
                fmt::format("`dtrain events --job-dir {}` shows what happened", where));
  }
  if (file->host == host_name() && !is_coordinated(folder)) {
    throw RemoteError(fmt::format("{}: the coordinator, process {}, is gone without a word", where, file->pid),
                      "start the same `dtrain train` again with --resume");
  }
  return *file;
}

std::string converse(const CoordinatorFile& file, const std::string& request) {
  std::promise<std::string> promise;
  std::future<std::string> answer = promise.get_future();
  bool done = false;  // like the promise it outlives the thread that calls back
  LoopThread thread;
  const auto channel = net::connect_channel(thread.loop(), file.address, file.port, file.token, kConnectDeadline);
  channel->listen({.on_frame =
                       [&](std::string frame) {
                         if (!std::exchange(done, true)) promise.set_value(std::move(frame));
                       },
                   .on_close =
                       [&](const std::string& reason) {
                         if (std::exchange(done, true)) return;
                         promise.set_exception(std::make_exception_ptr(RemoteError("it hung up: " + reason)));
                       }});
  channel->send(request);
  if (answer.wait_for(kAnswerDeadline) != std::future_status::ready) throw RemoteError("it does not answer");
  return answer.get();
}

}  // namespace

Json ask_coordinator(const JobFolder& folder, const Json& request) {
  const CoordinatorFile file = running_coordinator(folder);
  const std::string source =
      fmt::format("the coordinator of {}, process {} on {}", folder.path.string(), file.pid, file.host);
  Json answer;
  try {
    answer = Json::parse(converse(file, request.dump()), source);
  } catch (const RemoteError& error) {
    throw RemoteError(fmt::format("{}: {}", source, error.what()), "try again; `dtrain stop --now` ends the job");
  }
  if (const Json* error = answer.find("error")) {
    throw UsageError(error->at("message").as_string(), error->at("hint").as_string());
  }
  return answer;
}

}  // namespace dtrain::cli

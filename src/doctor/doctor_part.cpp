#include "doctor_part.hpp"

#include <chrono>
#include <iostream>
#include <iterator>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/net/addresses.hpp>
#include <dtrain/net/channel.hpp>

#include "doctor_findings.hpp"
#include "doctor_trial.hpp"

namespace dtrain::doctor {
namespace {

using namespace std::chrono_literals;
constexpr auto kServe = 120s;
constexpr auto kTick = 50ms;
constexpr auto kReach = 5s;

Json read_order() {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  return Json::parse(text, "standard input");
}

FolderTrial trial_of(const Json& order) {
  return {order.at("folder").as_string(), order.at("mark").as_string(),
          static_cast<int>(order.at("number").as_integer())};
}

Json answer_of_server(const net::Listener& listener, const FolderTrial::Written& written, const std::string& folder) {
  Json findings = Json::array();
  const MachineFacts facts = read_machine(folder, false);
  for (const Finding& finding : judge(facts)) findings.push_back(to_json(finding));
  return Json::object(
      {{"addresses", json_texts(net::own_addresses())},
       {"port", std::int64_t{listener.port()}},
       {"write_error", written.error},
       {"made_link", written.made_link},
       {"facts", to_json(facts)},
       {"findings", findings},
       {"time_ns", std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count()}});
}

void wait_for_the_end(net::Loop& loop, std::chrono::steady_clock::time_point until) {
  if (stop_signal() != 0 || std::chrono::steady_clock::now() > until) return loop.stop();
  loop.after(kTick, [&loop, until] { wait_for_the_end(loop, until); });
}

// Whether a peer that knows the secret answers; if none does, the error of the last address.
Json try_host(net::Loop& loop, const Json& host, const std::string& secret) {
  std::string error = "it reported no address";
  for (const Json& address : host.at("addresses").as_array()) {
    const auto begin = std::chrono::steady_clock::now();
    try {
      net::connect_channel(loop, address.as_string(), static_cast<std::uint16_t>(host.at("port").as_integer()), secret,
                           kReach);
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
      return Json::object({{"milliseconds", took.count()}, {"error", ""}});
    } catch (const Error& failure) {
      error = failure.what();
    }
  }
  return Json::object({{"milliseconds", 0.0}, {"error", error}});
}

}  // namespace

ExitCode serve_part(Reporter& reporter) {
  watch_stop_signals();
  const Json order = read_order();
  FolderTrial trial = trial_of(order);
  net::Loop loop;
  const net::Listener listener(loop, net::kAnyAddress, order.at("secret").as_string(), [](const auto&) {});
  const FolderTrial::Written written = trial.write();
  reporter.answer_json(answer_of_server(listener, written, order.at("folder").as_string()));
  reporter.flush();
  wait_for_the_end(loop, std::chrono::steady_clock::now() + kServe);
  loop.run();
  trial.clean_up();
  return ExitCode::ok;
}

ExitCode reach_part(Reporter& reporter) {
  const Json order = read_order();
  Json links = Json::array();
  net::Loop loop;
  std::jthread running([&loop] { loop.run(); });
  for (const Json& host : order.at("hosts").as_array())
    links.push_back(host.is_null() ? Json() : try_host(loop, host, order.at("secret").as_string()));
  loop.stop();
  const FolderTrial::Seen seen = trial_of(order).look(static_cast<int>(order.at("hosts").as_array().size()));
  Json numbers = Json::array();
  for (const int number : seen.numbers) numbers.push_back(number);
  reporter.answer_json(Json::object(
      {{"links", links}, {"seen", numbers}, {"lock_is_kept", seen.lock_is_kept ? Json(*seen.lock_is_kept) : Json()}}));
  return ExitCode::ok;
}

}  // namespace dtrain::doctor

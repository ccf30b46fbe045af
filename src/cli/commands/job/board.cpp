#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/base/with_flags.hpp>
#include <dtrain/cluster/spec.hpp>
#include <dtrain/net/objects.hpp>

#include "board/export_page.hpp"
#include "board/server.hpp"
#include "cli/command.hpp"
#include "config/job_options.hpp"
#include "job/spec/job_folder.hpp"

namespace dtrain::cli {
namespace {

using namespace std::chrono_literals;
constexpr auto kStopCheck = 50ms;
constexpr int kHighestPort = 65535;

struct BoardCommand {
  std::vector<Path> folders;
  int port = 6007;
  std::string address = "127.0.0.1";
  bool open = false, allow_actions = false;
  std::vector<std::string> clusters;
  std::optional<Path> out;
};

void bind(config::OptionSet& set, BoardCommand& options) {
  set.group("Options");
  config::Option& folders = set.add_paths(
      "FOLDER", options.folders,
      "folders to watch, up to 16 folders deep: job folders, --model-prefix of trainings, folders that hold them, "
      "or s3:// URLs (default the current folder)");
  folders.offers = config::Offers::jobs;
  set.add("--port", options.port, "N", "port to serve the page on; 0 takes a free one",
          config::between(0, kHighestPort));
  set.add("--address", options.address, "ADDRESS",
          "address to listen on, such as 0.0.0.0; at any other address than this machine's own, the page asks for a "
          "token")
      .not_from_project = true;
  set.add("--open", options.open, "open the page in the user's browser");
  set.add("--allow-actions", options.allow_actions,
          "let the page stop jobs, and drain, add and remove hosts; it asks for a token then")
      .not_from_project = true;
  set.add_custom(
         "--show-cluster", "NAME[,NAME...]",
         "show the machines, health and cost of these clusters too, asked of AWS, or of registered hosts, each minute "
         "while a page shows them",
         [&options](const std::string& names) {
           options.clusters = split(names, ',');
           for (const std::string& name : options.clusters) cluster::check_cluster_name(name);
         },
         [&options] { return join(options.clusters, ","); })
      .not_from_project = true;
  set.add("--export", options.out,
          "write one page that holds the runs as they are now, to look at without this program, and exit");
  config::bind_cluster_choice(set);
}

// "127.0.0.1:6007" or "[::1]:6007"; an IPv6 address alone holds several colons.
void refuse_port_in_address(const std::string& address) {
  const bool has_port = std::ranges::count(address, ':') == 1 || address.find("]:") != address.npos;
  if (has_port)
    throw UsageError(fmt::format("--address {}: holds a port", address), "name the address alone, and give --port");
}

// With a word for each that is not there, which may come later. A file never becomes a folder.
std::vector<std::string> folders_of(const BoardCommand& options, Reporter& reporter) {
  std::vector<std::string> folders;
  for (const Path& folder : options.folders) {
    folders.push_back(folder.string());
    const bool is_prefix = std::filesystem::exists(job::folder_of_prefix(folder).path);
    if (net::is_s3_url(folder.string()) || is_prefix || std::filesystem::is_directory(folder)) continue;
    if (std::filesystem::exists(folder))
      throw UsageError(fmt::format("{}: is a file", folder.string()), "name a folder, a --model-prefix or a --job-dir");
    if (!options.out)
      reporter.warn(fmt::format("{}: not there yet; the board shows what appears in it", folder.string()));
  }
  if (folders.empty()) folders.emplace_back(".");
  return folders;
}

void open_browser(const std::string& url, Reporter& reporter) {
  try {
    Spawn browser = spawn_of({"xdg-open", url});
    browser.executable = "/usr/bin/xdg-open";
    browser.environment = own_environment();
    spawn(browser);
  } catch (const Error& error) {
    reporter.warn(fmt::format("cannot open a browser: {}", error.what()));
  }
}

ExitCode write_page(const BoardCommand& options, Reporter& reporter) {
  const board::ExportResult written = board::export_page(folders_of(options, reporter), *options.out);
  if (reporter.json()) {
    reporter.answer_json(Json::object({{"schema", "dtrain.board-export/1"},
                                       {"file", options.out->string()},
                                       {"runs", std::uint64_t{written.runs}},
                                       {"bytes", written.bytes}}));
  } else {
    reporter.answer(options.out->string());
  }
  return ExitCode::ok;
}

ExitCode act(const BoardCommand& options, const config::OptionSet&, Reporter& reporter) {
  if (options.out) return write_page(options, reporter);
  refuse_port_in_address(options.address);
  watch_stop_signals();
  const board::BoardServer server({.folders = folders_of(options, reporter),
                                   .address = options.address,
                                   .port = static_cast<std::uint16_t>(options.port),
                                   .may_act = options.allow_actions,
                                   .clusters = options.clusters},
                                  [&reporter](const std::string& complaint) { reporter.warn(with_flags(complaint)); });
  if (reporter.json()) {
    reporter.answer_json(Json::object(
        {{"schema", "dtrain.board-server/1"}, {"url", server.url()}, {"port", std::int64_t{server.port()}}}));
  } else {
    reporter.answer(server.url());
  }
  reporter.flush();
  if (options.open) open_browser(server.url_to_open(), reporter);
  while (stop_signal() == 0) std::this_thread::sleep_for(kStopCheck);
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_board() {
  auto command = make_command<BoardCommand>("board", "show runs and jobs on a live page in the browser", act);
  command->examples = {"dtrain board m/ job/",
                       "dtrain board --port 6007 --open",
                       "dtrain board job --allow-actions",
                       "dtrain board m --show-cluster demo",
                       "dtrain board --cluster demo --port 6007",
                       "dtrain board m --export runs.html"};
  command->see_also = {"plot", "events", "tail-logs", "train"};
  return command;
}

}  // namespace dtrain::cli

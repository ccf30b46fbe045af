#include "server.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <thread>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/net/addresses.hpp>
#include <dtrain/net/http_exchange.hpp>
#include <dtrain/net/loop_thread.hpp>

#include "answers.hpp"
#include "caller.hpp"
#include "gate.hpp"
#include "job/spec/process_facts.hpp"
#include "memory.hpp"
#include "page.hpp"
#include "reply.hpp"

namespace dtrain::board {
namespace {

using namespace std::chrono_literals;
constexpr auto kCatalogPause = 250ms;  // between two looks at the folders
constexpr auto kSign = 15s;
constexpr std::size_t kManyBytes = 4 << 20;
constexpr std::size_t kAnswerers = 4, kTokenBytes = 16;

// The page loads nothing from anywhere else, runs nothing but its own files, and stands in no frame.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

net::HttpResponse with_safety(net::HttpResponse response) {
  response.headers.insert(response.headers.end(), {{"Content-Security-Policy", kPolicy},
                                                   {"X-Content-Type-Options", "nosniff"},
                                                   {"Referrer-Policy", "no-referrer"},
                                                   {"Cache-Control", "no-store"}});
  return response;
}

// A few threads that carry out work in the order in which it came.
class Workers {
 public:
  explicit Workers(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Workers() { stop(); }
  Workers(const Workers&) = delete;
  void add(std::function<void()> work) {
    const MutexLock lock(mutex_);
    if (stopped_) return;
    queue_.push_back(std::move(work));
    waiting_.notify_one();
  }
  // What has not begun is dropped; nothing runs any more when it returns.
  void stop() {
    {
      const MutexLock lock(mutex_);
      stopped_ = true;
      queue_.clear();
      waiting_.notify_all();
    }
    threads_.clear();
  }

 private:
  void work() {
    for (;;) {
      std::function<void()> next;
      {
        const MutexLock lock(mutex_);
        while (queue_.empty() && !stopped_) waiting_.wait(mutex_);
        if (stopped_) return;
        next = std::move(queue_.front());
        queue_.pop_front();
      }
      next();
    }
  }

  Mutex mutex_;
  CondVar waiting_;
  std::deque<std::function<void()>> queue_ DTRAIN_GUARDED_BY(mutex_);
  bool stopped_ DTRAIN_GUARDED_BY(mutex_) = false;
  std::vector<std::jthread> threads_;
};

// Every page that is open.
class Pages {
 public:
  void add(std::shared_ptr<net::HttpStream> page) {
    page->send("retry: 2000\n\n");
    const MutexLock lock(mutex_);
    pages_.push_back(std::move(page));
  }
  void send(const std::string& text) {
    const MutexLock lock(mutex_);
    std::erase_if(pages_, [](const auto& page) { return !page->is_open(); });
    for (const auto& page : pages_) page->send(text);
  }

 private:
  Mutex mutex_;
  std::vector<std::shared_ptr<net::HttpStream>> pages_ DTRAIN_GUARDED_BY(mutex_);
};

// Who has the port: {"program", "pid", "folders"} of another board.
std::string holder_of(const std::string& address, std::uint16_t port) {
  const std::string at = !net::is_any_address(address) ? address : address == net::kAnyAddress ? "127.0.0.1" : "::1";
  try {
    const net::HttpAnswer answer = net::exchange_http(
        {.url = fmt::format("http://{}:{}/who", net::in_brackets(at), port), .deadline = 2s, .direct = true});
    const Json json = Json::parse(answer.body, "the answer");
    return fmt::format("`dtrain board` as process {} shows {} there", json.at("pid").dump(),
                       json.at("machine").as_string());
  } catch (const Error&) {  // no board; the port's error says enough
    return "another program listens there";
  }
}

std::shared_ptr<net::ObjectStore> store_for(const std::vector<std::string>& folders) {
  const bool far = std::ranges::any_of(folders, [](const std::string& folder) { return net::is_s3_url(folder); });
  return far ? std::make_shared<net::ObjectStore>() : nullptr;
}

// What a browser on this machine, or on another one where the port is open to it, calls the board's machine.
std::string shown_host(const std::string& address) {
  if (net::is_any_address(address)) return job::host_name();
  return address == "127.0.0.1" || address == "::1" ? "localhost" : net::in_brackets(address);
}

std::string secret_for(const BoardOptions& options) {
  return needs_token(options) ? to_hex(unpredictable_bytes(kTokenBytes)) : std::string();
}

}  // namespace

bool needs_token(const BoardOptions& options) { return options.may_act || !net::is_loopback(options.address); }

struct BoardServer::State {
  State(BoardOptions chosen, std::function<void(const std::string&)> complaining)
      : options(std::move(chosen)),
        complain(std::move(complaining)),
        store(store_for(options.folders)),
        catalog(options.folders, store),
        clusters(options.clusters, ask_own_program),
        answers(catalog, {job::host_name(), options.folders, options.may_act, store, &clusters}),
        http(listen()),
        port(http->port()),
        gate(secret_for(options), port, options.address, secret_for(options)),
        watcher([this](const std::stop_token& stop) { watch(stop); }) {
    ready = true;
  }
  // The page's requests end first, then the threads that answer them, then the loop that sends the answers.
  ~State() {
    watcher.request_stop();
    watcher.join();
    http.reset();
    workers.stop();
    loop.stop();
  }

  std::unique_ptr<net::HttpServer> listen() {
    try {
      return std::make_unique<net::HttpServer>(
          loop.loop(), options.address, options.port,
          [this](const net::HttpRequest& request) { return with_safety(answer(request)); },
          net::HttpServerOptions{.most_of_address = 64, .keep_alive = true});
    } catch (const net::PortInUse& error) {
      throw Error(fmt::format("{}; {}", error.what(), holder_of(options.address, options.port)),
                  "choose another one with setting 'port', or 0 for any free one");
    } catch (const Error& error) {
      if (!error.hint().empty()) throw;
      throw Error(error.what(), "name an address of this machine, without a port, in setting 'address'");
    }
  }

  net::HttpResponse answer(const net::HttpRequest& request) {
    const auto target = parse_target(request.path);
    if (!ready || !target) return refuse(400, "no such address");
    if (target->path == "/who" && net::is_loopback(request.peer)) return who();
    if (net::is_loopback(options.address) && !is_own(request))
      return refuse(403, "this page is for the user who started it",
                    "start a board of your own; where the connection comes from a proxy or `ssh -L`, run that as the "
                    "user of the board");
    const std::string word = target->text("open");
    if (!word.empty() && is_own(request) && gate.open_with(word)) return remember();
    switch (gate.judge(request, *target, std::chrono::steady_clock::now())) {
      case Gate::Verdict::enter:
        return answer_guest(request, *target);
      case Gate::Verdict::remember:
        return remember();
      case Gate::Verdict::refused:
        return refuse(401, "this board asks for its token", "open the address that `dtrain board` printed");
      case Gate::Verdict::exhausted:
        return refuse(429, "too many wrong tokens", "wait a minute");
      case Gate::Verdict::stranger:
        return refuse(403, "a page of another site may not ask", "open the address that `dtrain board` printed");
    }
    return refuse(403, "no");
  }

  bool is_own(const net::HttpRequest& request) {
    return callers.has(request.connection, {request.peer, request.peer_port, port});
  }

  // Every user of the machine may ask for it, so it keeps no connection.
  static net::HttpResponse who() {
    net::HttpResponse response =
        reply(Json::object({{"program", "dtrain board"}, {"pid", ::getpid()}, {"machine", job::host_name()}}));
    response.last = true;
    return response;
  }

  net::HttpResponse remember() const {
    return {.status = 303, .headers = {{"Location", "/"}, {"Set-Cookie", gate.cookie()}}};
  }

  net::HttpResponse answer_guest(const net::HttpRequest& request, const Target& target) {
    if (target.path == "/api/stream") {
      return {.type = "text/event-stream",
              .stream = [this](std::shared_ptr<net::HttpStream> page) { pages.add(std::move(page)); }};
    }
    if (target.path.starts_with("/api/")) {
      return {.later = [this, request, target](net::HttpResponse::Reply send) {
        workers.add(
            [this, request, target, send = std::move(send)] { send(with_safety(answers.answer(request, target))); });
      }};
    }
    const std::string name = target.path == "/" ? "index.html" : target.path.substr(1);
    const auto files = page_files();
    const auto file = std::ranges::find(files, name, &PageFile::name);
    if (file == files.end()) return refuse(404, fmt::format("{}: there is no such page", target.path));
    return reply(std::string(file->text), std::string(file->type));
  }

  void watch(const std::stop_token& stop) {
    auto next_sign = std::chrono::steady_clock::now() + kSign;
    bool first = true;
    std::string trouble;
    for (; !stop.stop_requested(); sleep_unless_stopped(stop, kCatalogPause)) {
      try {
        const auto now = std::chrono::steady_clock::now();
        const Catalog::Change change = catalog.look(now, [&] { return stop.stop_requested(); });
        for (const std::string& complaint : catalog.take_complaints()) complain(complaint);
        if (!change.empty()) pages.send(fmt::format("data: {}\n\n", json_of(change).dump()));
        if (std::exchange(first, false) || change.bytes > kManyBytes) give_back_memory();
        if (now >= next_sign) {
          give_back_free_memory();  // what long answers took
          pages.send(":\n\n");
          next_sign = now + kSign;
        }
        trouble.clear();
      } catch (const std::exception& error) {  // the next round may do better
        if (trouble != error.what()) complain(error.what());
        trouble = error.what();
      }
    }
  }

  static Json json_of(const Catalog::Change& change) {
    Json rows = Json::array(), gone = Json::array();
    for (const Json& row : change.rows) rows.push_back(row);
    for (const std::string& id : change.gone) gone.push_back(id);
    return Json::object({{"rows", rows}, {"gone", gone}});
  }

  std::string url_with(const char* name, const std::string& secret) const {
    const std::string url = fmt::format("http://{}:{}/", shown_host(options.address), port);
    return secret.empty() ? url : fmt::format("{}?{}={}", url, name, secret);
  }

  const BoardOptions options;
  const std::function<void(const std::string&)> complain;
  const std::shared_ptr<net::ObjectStore> store;
  Catalog catalog;
  ClusterWatch clusters;
  const Answers answers;
  Pages pages;
  Workers workers{kAnswerers};
  net::LoopThread loop;
  std::atomic<bool> ready{false};
  std::unique_ptr<net::HttpServer> http;
  const std::uint16_t port;
  Gate gate;
  OwnCallers callers;  // asked on the loop's thread
  std::jthread watcher;
};

namespace {

BoardOptions prepared(BoardOptions options) {
  share_allocations();
  return options;
}

}  // namespace

BoardServer::BoardServer(BoardOptions options, std::function<void(const std::string&)> complain)
    : state_(std::make_unique<State>(prepared(std::move(options)), std::move(complain))) {}
BoardServer::~BoardServer() = default;

std::uint16_t BoardServer::port() const { return state_->http->port(); }
std::size_t BoardServer::runs() const { return state_->catalog.ids().size(); }

std::string BoardServer::url() const { return state_->url_with("token", state_->gate.token()); }
std::string BoardServer::url_to_open() const { return state_->url_with("open", state_->gate.open_word()); }

}  // namespace dtrain::board

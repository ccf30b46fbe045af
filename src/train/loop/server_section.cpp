#include "server_section.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include <dtrain/base/error.hpp>

#include "sign_of_life_sink.hpp"
#include "step_report.hpp"

namespace dtrain::train {
namespace {

using elastic::Phase;
using elastic::Verdict;

BookPlan book_of(const RunContext& context, const RunState& run, const EpochPlan& plan, int ranks) {
  BookPlan book{.epoch = plan, .position = run.cursor.position, .ahead = run.ahead, .ranks = ranks};
  book.max_staleness = context.options.servers.max_staleness;
  const std::uint64_t every = context.options.checkpoint_every_steps;
  if (every > 0) book.most = every - run.cursor.step % every;
  return book;
}

OpenSection& begin_section(const RunContext& context, int ranks, std::uint64_t generation, const RunState& run,
                           const EpochPlan& plan) {
  OpenSection& section = context.shards->open.emplace();
  section.key = fmt::format("parameters {}-{}-{}", generation, run.cursor.epoch, run.cursor.position);
  section.book = book_of(context, run, plan, ranks);
  section.layouts = cut_into_shards(context.graph, std::min(context.options.servers.servers, ranks));
  section.base = context.executable.read_state();
  return section;
}

Json address_json(const ShardServer* server) {
  if (!server) return {};
  const comm::PeerAddress at = server->address();
  return Json::object({{"address", at.address}, {"port", static_cast<int>(at.port)}});
}

}  // namespace

// The leaves of a worker's part of a batch; each is written by one thread. The memory serves all batches.
class ServerSection::Leaves final : public backend::ContributionSink {
 public:
  explicit Leaves(const nn::Graph& graph)
      : size_(static_cast<std::size_t>(backend::ContributionLayout(graph).size())) {}
  void begin(const std::vector<backend::ShardRange>& shards) {
    first_ = shards.empty() ? 0 : shards.front().index;
    while (leaves_.size() < shards.size()) leaves_.emplace_back(size_);
  }
  std::span<float> buffer(const backend::ShardRange& shard) override { return of(shard); }
  void ready(const backend::ShardRange&, std::int64_t, std::int64_t, bool) override {}
  std::vector<float>& of(const backend::ShardRange& shard) {
    return leaves_[static_cast<std::size_t>(shard.index - first_)];
  }

 private:
  const std::size_t size_;
  std::vector<std::vector<float>> leaves_;
  int first_ = 0;
};

ServerSection::ServerSection(const RunContext& context, comm::Communicator& comm, std::uint64_t generation,
                             RunState& run, const EpochPlan& plan, BatchFeed& feed)
    : context_(context),
      comm_(comm),
      run_(run),
      plan_(plan),
      feed_(feed),
      memory_(*context.shards),
      section_(begin_section(context, comm.size(), generation, run, plan)),
      samples_before_(run.cursor.samples_seen - run.cursor.position),
      leaves_(std::make_unique<Leaves>(context.graph)) {}

ServerSection::~ServerSection() {
  if (!server_) return;
  server_->stop();
  if (memory_.open) memory_.open->shards = server_->take_shards();
}

Verdict ServerSection::train() {
  make_server();
  connect();
  train_batches();
  context_.membership.progress(Phase::reducing);
  link_->finish();
  report();
  const std::vector<std::uint64_t> votes = gather_votes();  // also a barrier: all have the first server's answer
  link_.reset();
  if (server_) {
    server_->stop();
    section_.shards = server_->take_shards();
    server_.reset();
  }
  const bool whole = put_together(comm_, context_.executable, context_.membership, memory_, run_);
  DTRAIN_CHECK(whole, "all servers are there at the end of a section");
  run_.epoch_time += Clock::now() - begin_;
  return context_.membership.judge(votes, false);
}

std::vector<std::uint64_t> ServerSection::gather_votes() {
  const std::uint64_t mine = context_.membership.vote();
  std::vector<std::uint64_t> votes;
  for (const std::string& text : comm_.all_gather(std::as_bytes(std::span(&mine, 1)))) {
    if (text.size() != sizeof mine) throw PeerLost("a rank gave no vote");
    std::memcpy(&votes.emplace_back(), text.data(), sizeof mine);
  }
  return votes;
}

void ServerSection::make_server() {
  const int rank = comm_.rank(), ranks = comm_.size(), servers = static_cast<int>(section_.layouts.size());
  const int before = (rank + ranks - 1) % ranks;
  const bool serves = rank < servers;
  const bool keeps = ranks > 1 && before < servers;
  if (!serves && !keeps) return;
  const ParameterServers& options = context_.options.servers;
  server_ = std::make_unique<ShardServer>(options, section_.key);
  const auto shard = [&](int number) {
    ParameterShard made(section_.layouts[static_cast<std::size_t>(number)], options, context_.options.optimizer,
                        plan_.shards, section_.base);
    if (is_synchronous()) made.keep_previous();
    return made;
  };
  if (serves) server_->serve(shard(rank), rank, rank == 0 ? std::optional(section_.book) : std::nullopt);
  if (keeps) server_->keep_replica(shard(before), before);
}

void ServerSection::connect() {
  const std::string mine = address_json(server_.get()).dump();
  std::vector<comm::PeerAddress> all;
  for (const std::string& text : comm_.all_gather(bytes_of(mine))) {
    const Json at = Json::parse(text, "a peer's server");
    if (at.is_null()) {
      all.emplace_back();
    } else {
      all.push_back({at.at("address").as_string(), static_cast<std::uint16_t>(at.at("port").as_integer())});
    }
  }
  const auto rank = static_cast<std::size_t>(comm_.rank());
  if (server_ && rank < section_.layouts.size() && comm_.size() > 1) {
    try {
      server_->replicate_to(all[(rank + 1) % all.size()]);
    } catch (const RemoteError& error) {
      throw PeerLost(fmt::format("the replica of rank {}'s shard: {}", rank, error.what()));
    }
  }
  if (server_) server_->start();
  all.resize(section_.layouts.size());
  link_ = std::make_unique<ServerLink>(section_.layouts, all, context_.options.servers.secret, section_.key,
                                       comm_.rank(), [this] { between(); });
}

// While this worker waits.
void ServerSection::between() {
  context_.membership.progress(Phase::reducing);
  context_.membership.require_generation();
  const std::string failure = server_ ? server_->failure() : std::string();
  if (!failure.empty()) throw Error(fmt::format("the parameter server of rank {}: {}", comm_.rank(), failure));
}

// The next batch is loaded while one is computed.
void ServerSection::train_batches() {
  const MixPlan mix{
      .options = context_.options.mix, .seed = context_.options.seed, .image = context_.graph.input(), .shards = {}};
  feed_.start(run_.cursor.epoch, {}, mix);
  take_batch();
  while (!taken_.empty()) {
    take_batch();
    const Ticket ticket = taken_.front();
    taken_.pop_front();
    const FedBatch batch = load(ticket);
    pull();
    confirm();
    compute_and_push(ticket, batch);
    note_progress();
    look_for_agreement();
    report();
  }
  link_->flush();
  confirm();
}

void ServerSection::take_batch() {
  if (!more_) return;
  const std::optional<Ticket> ticket = link_->next(context_.membership.vote());
  more_ = ticket.has_value();
  if (!ticket) return;
  taken_.push_back(*ticket);
  const RankStep mine = step_of(*ticket);
  if (mine.slice.count > 0) feed_.add(mine.slice, mine.shards);
}

RankStep ServerSection::step_of(const Ticket& ticket) const {
  if (is_synchronous()) {
    return rank_step(plan_, ticket.slice.first, comm::shards_of_rank(comm_.rank(), comm_.size(), plan_.shards));
  }
  return {ticket.slice, {{.index = 0, .first = 0, .count = ticket.slice.count}}};
}

Cursor ServerSection::place_of(const Ticket& ticket) const {
  return {
      .epoch = run_.cursor.epoch, .step = step_of_batch(run_, plan_, ticket.number), .position = ticket.slice.first};
}

FedBatch ServerSection::load(const Ticket& ticket) {
  return load_batch(context_, feed_, step_of(ticket).slice, place_of(ticket), speaks());
}

// Running statistics are the servers' too, and training does not look at them.
void ServerSection::pull() {
  context_.membership.progress(Phase::reducing);
  if (!is_synchronous() && context_.options.servers.max_staleness) link_->begin();
  backend::ModelState state{.parameters = std::vector<float>(section_.base.parameters.size()),
                            .statistics = section_.base.statistics,
                            .optimizer = {},
                            .updates = section_.base.updates,
                            .loss_scale = section_.base.loss_scale};
  link_->pull(is_synchronous() ? steps_ : 0, state.parameters);
  context_.executable.write_state(std::move(state));
}

// What the servers answered to a question behind a push says that they have it.
void ServerSection::confirm() {
  if (to_confirm_) link_->done(*to_confirm_);
  to_confirm_.reset();
}

void ServerSection::compute_and_push(const Ticket& ticket, const FedBatch& batch) {
  context_.membership.progress(Phase::computing);
  const std::vector<backend::ShardRange> shards = step_of(ticket).shards;
  const backend::ContributionLayout layout(context_.graph);
  leaves_->begin(shards);
  const std::function<void()> sign_of_life = [this] { context_.membership.progress(Phase::computing); };
  SignOfLifeSink watched(*leaves_, sign_of_life);
  context_.executable.enqueue(batch.host(), shards, {context_.options.seed, run_.cursor.epoch}, watched.as_sink());
  context_.executable.synchronize();
  watched.rethrow();
  const double rate = rate_of(ticket.number);
  for (const backend::ShardRange& shard : shards) {
    const backend::StepMetrics metrics = metrics_of(layout, leaves_->of(shard));
    require_finite_loss(
        metrics, place_of(ticket), rate, [&] { return way_out_of_divergence(context_, run_, false); },
        context_.options.same_bits);
  }
  context_.membership.progress(Phase::reducing);
  for (const backend::ShardRange& shard : shards) {
    link_->push(ticket.number, shard.index, static_cast<float>(rate), leaves_->of(shard));
  }
  ++steps_;
  to_confirm_ = ticket.number;
}

// The rate is that of the batch's place in the epoch, whoever trains it and when.
double ServerSection::rate_of(std::uint64_t number) const {
  const std::uint64_t first = EpochBook::slice(section_.book, number).first;
  return context_.options.schedule.rate(samples_before_ + first, plan_.samples);
}

void ServerSection::note_progress() {
  const std::uint64_t batches = run_.ahead.size() + link_->batches_done();
  elastic::TrainingPosition position = training_position_of(run_);
  position.step += batches;
  position.samples_seen = std::min(samples_before_ + plan_.samples,
                                   position.samples_seen + batches * static_cast<std::uint64_t>(plan_.global_batch));
  context_.membership.begin_apply();
  context_.membership.end_apply(position);
}

// Rank 0 looks for all: the others come to the end when the book gives them no batch, and all vote again there.
void ServerSection::look_for_agreement() {
  if (!speaks() || agreed_) return;
  const std::vector<std::uint64_t> votes = server_->votes();
  if (votes.empty() || context_.membership.judge(votes, false) == Verdict::go_on) return;
  agreed_ = true;
  server_->end_section();
}

void ServerSection::report() {
  if (!speaks()) return;
  for (const AppliedBatch& batch : server_->take_done()) {
    const auto samples = static_cast<int>(std::llround(batch.metrics.count));
    StepReport report = step_report(context_, batch.metrics);
    report.epoch = run_.cursor.epoch;
    report.step = run_.cursor.step + run_.ahead.size() + told_;
    report.steps = run_.cursor.step + plan_.steps_from(run_.cursor.position);
    report.samples = samples;
    report.samples_seen = run_.cursor.samples_seen + samples_told_ + static_cast<std::uint64_t>(samples);
    report.learning_rate = rate_of(batch.number);
    report.time = batch.done - mark_;
    context_.reporter.tell({report});
    ++told_;
    samples_told_ += static_cast<std::uint64_t>(samples);
    mark_ = batch.done;
  }
}

}  // namespace dtrain::train

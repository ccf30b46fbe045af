#include <dtrain/data/loader.hpp>

#include <fmt/format.h>

#include <iterator>
#include <numeric>
#include <set>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/base/thread_error.hpp>
#include <dtrain/data/labels.hpp>

#include "batch_queue.hpp"
#include "decoded_pictures.hpp"
#include "patient_reads.hpp"
#include "picture_groups.hpp"
#include "remote/read_ahead.hpp"

namespace dtrain::data {
namespace {

std::uint32_t epoch_size(const RecordSet& file, const LoaderOptions& options) {
  const std::uint64_t size = samples_of_epoch(file.size(), options.num_examples);
  if (size <= UINT32_MAX) return static_cast<std::uint32_t>(size);
  throw DataError(fmt::format("{} holds {} records, more than {}", file.name(), size, UINT32_MAX),
                  "limit them: setting 'num-examples'");
}

}  // namespace

std::uint64_t samples_of_epoch(std::uint64_t records, std::int64_t num_examples) {
  return num_examples > 0 ? std::min(records, static_cast<std::uint64_t>(num_examples)) : records;
}

// One consumer thread calls start() and next(); `options.threads` workers decode. `mutex` guards the queue of batches
// and `stopping`. A worker takes the mutex to claim a few samples of the oldest batch that has any left, decodes them
// into the batch's buffer without it, and takes it again to add its findings. Claims do not overlap, so that writes to
// a buffer need no lock. `work_there` wakes workers when a batch is opened or the loader stops; `batch_complete` wakes
// the consumer. Up to `queue_batches` batches are open. A batch that start() drops stays alive while a worker decodes
// into it, and ends early through its atomic `dropped`. The members before `mutex` belong to the consumer. Workers
// never throw: errors become findings of the batch, and the consumer examines them in the order of the samples, so that
// the error of an epoch is the same however the threads raced. `decoded` and `patiently` have a discipline of their
// own. The destructor joins the workers before all other members go, as `threads` is the last member.
struct Loader::State {
  State(const Path& rec, LoaderOptions loader_options);
  ~State();
  void stop();  // tells the threads to end
  EpochOrder order_of(std::uint32_t epoch) const;
  std::vector<std::uint32_t> positions_of(std::span<const Slice> some) const;
  void open_batches() DTRAIN_REQUIRES(mutex);
  void work();
  Findings load(const Claim& claim, SampleReader& reader);
  std::size_t sample_bytes(const nn::Shape& shape) const;
  std::shared_ptr<PendingBatch> take();
  nn::Shape shape_of(const Slice& slice) const;
  SampleSlot slot(const PendingBatch& batch, std::size_t index) const;
  bool next_is_ready();
  void check(Findings& findings);
  void count_bad_records(std::vector<Findings::Bad>& bad);
  int keep_good(PendingBatch& batch) const;

  const LoaderOptions options;
  const RecordSet file;
  const std::uint32_t size;
  const nn::Shape stored;
  std::vector<std::int32_t> labels;  // where the order is balanced
  PictureGroups groups;
  BatchPool pool;
  PatientReads patiently{options};
  const std::unique_ptr<DecodedPictures> decoded;  // null: none are kept

  // The consumer's own: what it asked for, and what came out.
  std::uint32_t epoch = 0;
  std::shared_ptr<const EpochOrder> order;
  std::vector<Slice> slices;
  std::size_t opened = 0, samples_read = 0;
  std::exception_ptr error;
  std::set<std::uint32_t> bad_positions;
  std::string first_bad;

  Mutex mutex;
  CondVar work_there, batch_complete;
  BatchQueue queue DTRAIN_GUARDED_BY(mutex);
  bool stopping DTRAIN_GUARDED_BY(mutex) = false;
  ReadAhead ahead;
  std::vector<std::jthread> threads;
};

static LoaderOptions settled(LoaderOptions options) {
  options.remote.in_runs = !options.shuffle || options.shuffle_block > 0;
  if (options.detection) options.as_bytes = false;
  return options;
}

Loader::State::State(const Path& rec, LoaderOptions loader_options)
    : options(settled(std::move(loader_options))),
      file(find_records(rec.string(), options.remote.store), options.remote),
      size(epoch_size(file, options)),
      stored(options.as_bytes ? stored_shape(file, options) : options.shape),
      pool(options.memory),
      decoded(decoded_pictures(size, options)),
      ahead(file, options.remote.cache_size) {
  check_loader(file, options);
  if (options.balanced) labels = labels_of_samples(file, size, options.classes, options.max_bad_records);
  groups = group_pictures(file, size, options);
  try {
    for (int i = 0; i < options.threads; ++i) threads.emplace_back([this] { work(); });
  } catch (const std::system_error& refused) {
    stop();
    throw no_thread("that loads data", refused);
  }
}

Loader::State::~State() { stop(); }

void Loader::State::stop() {
  {
    const MutexLock lock(mutex);
    stopping = true;
    queue.drop_all();
  }
  work_there.notify_all();
}

EpochOrder Loader::State::order_of(std::uint32_t number) const {
  EpochOrder whole;
  if (options.balanced) {
    whole = balanced_order(options.seed, number, labels);
  } else if (options.shuffle) {
    whole.records = epoch_order(options.seed, number, size, options.shuffle_block);
  } else {
    whole.records.resize(size);
    std::iota(whole.records.begin(), whole.records.end(), 0u);
  }
  if (options.in_groups()) return grouped(whole, groups.of, options.group_batch);
  return repeated(std::move(whole), options.repeats);
}

nn::Shape Loader::State::shape_of(const Slice& slice) const {
  if (!options.in_groups()) return stored;
  const auto group_at = [&](std::uint64_t at) { return groups.of[order->records[at]]; };
  for (int i = 1; i < slice.count; ++i) {
    DTRAIN_CHECK(group_at(slice.first + static_cast<std::uint64_t>(i)) == group_at(slice.first),
                 "a slice lies within a group's batch");
  }
  return slice.count > 0 ? groups.groups[group_at(slice.first)].shape : stored;
}

// Positions of the records to read, in order; none if all files are local.
std::vector<std::uint32_t> Loader::State::positions_of(std::span<const Slice> some) const {
  std::vector<std::uint32_t> positions;
  if (!file.is_remote()) return positions;
  for (const Slice& slice : some) {
    for (std::uint64_t at = slice.first; at < slice.first + static_cast<std::uint64_t>(slice.count); ++at) {
      positions.push_back(order ? order->records[at] : static_cast<std::uint32_t>(at));
    }
  }
  return positions;
}

void Loader::State::open_batches() {
  const auto limit = static_cast<std::size_t>(options.queue_batches);
  for (; opened < slices.size() && queue.size() < limit; ++opened) {
    auto batch = std::make_shared<PendingBatch>();
    batch->epoch = epoch;
    batch->slice = slices[opened];
    batch->shape = shape_of(batch->slice);
    batch->order = order;
    batch->buffer = pool.take(static_cast<std::size_t>(batch->slice.count), sample_bytes(batch->shape));
    if (options.detection) batch->buffer->objects.resize(static_cast<std::size_t>(batch->slice.count));
    queue.push(std::move(batch));
  }
}

void Loader::State::work() {
  SampleReader reader(file, options, size, stored, decoded.get());
  MutexLock lock(mutex);
  while (!stopping) {
    const Claim claim = queue.claim();
    if (!claim.batch) {
      work_there.wait(mutex);
      continue;
    }
    lock.unlock();
    Findings found = load(claim, reader);
    lock.lock();
    Findings& all = claim.batch->findings;
    std::move(found.bad.begin(), found.bad.end(), std::back_inserter(all.bad));
    std::move(found.failures.begin(), found.failures.end(), std::back_inserter(all.failures));
    claim.batch->finished += claim.count;
    if (claim.batch->complete()) batch_complete.notify_one();
  }
}

std::size_t Loader::State::sample_bytes(const nn::Shape& shape) const {
  return static_cast<std::size_t>(shape.size()) * (options.as_bytes ? 1 : sizeof(float));
}

SampleSlot Loader::State::slot(const PendingBatch& batch, std::size_t index) const {
  BatchBuffer& buffer = *batch.buffer;
  std::byte* const values = buffer.values + index * sample_bytes(batch.shape);
  const auto elements = static_cast<std::size_t>(batch.shape.size());
  if (options.as_bytes)
    return {{}, {reinterpret_cast<std::uint8_t*>(values), elements}, buffer.places + index, nullptr, batch.shape};
  nn::PictureObjects* const objects = options.detection ? &buffer.objects[index] : nullptr;
  return {{reinterpret_cast<float*>(values), elements}, {}, nullptr, objects, batch.shape};
}

Findings Loader::State::load(const Claim& claim, SampleReader& reader) {
  PendingBatch& batch = *claim.batch;
  Findings found;
  std::vector<BadRecord> bad;
  for (int index = claim.index; index < claim.index + claim.count && !batch.dropped; ++index) {
    const auto at = static_cast<std::size_t>(index);
    const Turn turn = batch.turn(index);
    const auto read = [&] {
      bad.clear();
      return reader.read(turn, batch.epoch, slot(batch, at), bad);
    };
    try {
      if (!patiently(read, batch.dropped)) {
        found.failures.push_back({index, nullptr});
      }
      batch.buffer->labels[at] = reader.label();
      // Copies need names of their own: dropout and stochastic depth draw by them.
      batch.buffer->sample_ids[at] = turn.position + turn.copy * size;
    } catch (...) {
      found.failures.push_back({index, std::current_exception()});
    }
    for (BadRecord& record : bad) found.bad.push_back({index, std::move(record)});
    bad.clear();
  }
  return found;
}

// Waits for the oldest batch; null when there is none.
std::shared_ptr<PendingBatch> Loader::State::take() {
  MutexLock lock(mutex);
  if (queue.empty()) return nullptr;
  const bool watches = options.patience.count() > 0 && file.is_remote();  // a server may be away for minutes
  for (const WatchedWait wait(options.patience); !queue.front_complete();) {
    watches ? batch_complete.wait_for(mutex, WatchedWait::kInterval) : batch_complete.wait(mutex);
    if (!watches || !wait.is_due()) continue;
    lock.unlock();
    if (options.while_waiting) options.while_waiting();
    lock.lock();
  }
  auto batch = queue.pop();
  open_batches();
  lock.unlock();
  work_there.notify_all();
  samples_read += static_cast<std::size_t>(batch->slice.count);
  ahead.have_read(samples_read);
  return batch;
}

// Done by the consumer, batch after batch, so that the first bad record, the one too many and the first error are the
// same however the threads raced.
bool Loader::State::next_is_ready() {
  const MutexLock lock(mutex);
  return !error && !queue.empty() && queue.front_complete() && queue.front_is_good();
}

void Loader::State::check(Findings& findings) {
  count_bad_records(findings.bad);
  const auto by_index = [](const auto& a, const auto& b) { return a.index < b.index; };
  const auto first = std::min_element(findings.failures.begin(), findings.failures.end(), by_index);
  if (first != findings.failures.end() && first->error) std::rethrow_exception(first->error);
  const auto limit = static_cast<std::size_t>(options.max_bad_records);
  if (first == findings.failures.end() && bad_positions.size() <= limit) return;
  throw DataError(
      limit == 0 ? first_bad
                 : fmt::format("{} bad records, more than setting 'max-bad-records' {} or no good one after them; the "
                               "first: {}",
                               bad_positions.size(), limit, first_bad),
      fmt::format("dtrain data verify {} lists them{}", shown_path(file.files().front().path()).string(),
                  options.names_bad_limit ? "; setting 'max-bad-records' N trains without up to N of them" : ""));
}

void Loader::State::count_bad_records(std::vector<Findings::Bad>& bad) {
  std::stable_sort(bad.begin(), bad.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
  for (const Findings::Bad& each : bad) {
    if (bad_positions.empty()) {
      first_bad = each.record.what;
      if (options.remote.tell && options.max_bad_records > 0) options.remote.tell(first_bad + "; passed over");
    }
    bad_positions.insert(each.record.position);
  }
}

// Samples that the batch keeps. The place of a bad record holds another record's sample until then: the search for one
// is what tells a file without any good record.
int Loader::State::keep_good(PendingBatch& batch) const {
  if (!options.leave_out_bad || batch.findings.bad.empty()) return batch.slice.count;
  std::set<int> out;
  for (const Findings::Bad& bad : batch.findings.bad) out.insert(bad.index);
  return leave_out(*batch.buffer, batch.slice.count, sample_bytes(batch.shape), out);
}

Loader::Loader(const Path& rec, LoaderOptions options) : state_(std::make_unique<State>(rec, std::move(options))) {}

Loader::~Loader() = default;

std::uint32_t Loader::size() const { return state_->size; }
RecordOrder Loader::record_order() const { return order_of_records(state_->file, state_->size); }

const std::vector<PictureGroup>& Loader::groups() const { return state_->groups.groups; }

static void require_part_of_epoch(const Slice& slice, std::uint32_t size) {
  DTRAIN_CHECK(slice.count >= 0 && slice.first + static_cast<std::uint64_t>(slice.count) <= size,
               "a slice is a part of the epoch");
}

void Loader::start(std::uint32_t epoch, std::vector<Slice> slices) {
  State& state = *state_;
  for (const Slice& slice : slices) require_part_of_epoch(slice, state.size);
  const bool has_order = state.options.shuffle || state.options.in_groups();
  auto order = has_order ? std::make_shared<const EpochOrder>(state.order_of(epoch)) : nullptr;
  {
    const MutexLock lock(state.mutex);
    state.queue.drop_all();
    state.epoch = epoch;
    state.order = std::move(order);
    state.slices = std::move(slices);
    state.opened = state.samples_read = 0;
    state.error = nullptr;
    state.ahead.start(state.positions_of(state.slices));
    state.open_batches();
  }
  state.work_there.notify_all();
}

void Loader::add(const Slice& slice) {
  State& state = *state_;
  require_part_of_epoch(slice, state.size);
  {
    const MutexLock lock(state.mutex);
    state.slices.push_back(slice);
    state.ahead.add(state.positions_of({&slice, 1}));
    state.open_batches();
  }
  state.work_there.notify_all();
}

std::optional<Batch> Loader::next() {
  State& state = *state_;
  if (state.error) std::rethrow_exception(state.error);
  const auto batch = state.take();
  if (!batch) return std::nullopt;
  try {
    state.check(batch->findings);
  } catch (...) {
    state.error = std::current_exception();
    const MutexLock lock(state.mutex);
    state.queue.drop_all();
    throw;
  }
  const int count = state.keep_good(*batch);
  const BatchBuffer& buffer = *batch->buffer;
  Batch result{count, nullptr, buffer.labels, buffer.sample_ids, batch->buffer};
  if (state.options.as_bytes) {
    result.pixels = {.bytes = reinterpret_cast<const std::uint8_t*>(buffer.values),
                     .places = buffer.places,
                     .rows = state.stored.h,
                     .columns = state.stored.w,
                     .scale = pixel_scale(state.options.augment)};
  } else {
    result.images = reinterpret_cast<const float*>(buffer.values);
  }
  if (state.options.detection) result.objects = buffer.objects.data();
  result.shape = state.options.as_bytes ? state.options.shape : batch->shape;
  return result;
}

std::optional<Batch> Loader::next_if_ready() { return state_->next_is_ready() ? next() : std::nullopt; }

std::int64_t Loader::bad_records() const { return std::ssize(state_->bad_positions); }

std::string Loader::first_bad_record() const { return state_->first_bad; }

KeptPictures Loader::kept_pictures() const { return state_->decoded ? state_->decoded->kept() : KeptPictures{}; }

std::string Loader::bad_records_warning() const {
  if (bad_records() == 0) return {};
  return fmt::format("{} records could not be decoded and were {}; the first: {}", bad_records(),
                     state_->options.leave_out_bad ? "left out of the evaluation" : "replaced", first_bad_record());
}

}  // namespace dtrain::data

/*
 * journal.c - writes events of stores to the log: claims, fences, resyncs, ends of sessions. The
 * store logic calls it through stores_on_event(). It changes nothing.
 */
#include "../loop/daemon.h"

static void log_files_event(const struct store_event_info *news, const struct log_fields *about)
{
	if (news->event == STORE_FILES_MISSING)
		log_event(LOG_LEVEL_ERROR, "files-missing", about,
		          "store %s: it would not survive a restart of this daemon: %s",
		          news->store, news->restart_loss);
	else
		log_event(LOG_LEVEL_INFO, "files-back", about,
		          "store %s: its files are in place again", news->store);
}

void journal_log_event(void *arg, const struct store_event_info *news)
{
	const char *peer = news->session ? news->session->peer : NULL;
	const struct log_fields about = {
		.store = news->store, .epoch = news->epoch, .seq = news->seq, .peer = peer
	};
	const unsigned long long epoch = news->epoch, seq = news->seq;

	(void)arg;
	switch (news->event) {
	case STORE_CREATED:
		log_event(LOG_LEVEL_INFO, "created", &about, "store %s: created", news->store);
		break;
	case STORE_CLAIMED:
		log_event(LOG_LEVEL_INFO, "claimed", &about,
		          "store %s: claimed by %s with epoch %llu", news->store, peer, epoch);
		break;
	case STORE_FENCED:
		log_event(LOG_LEVEL_INFO, "fenced", &about,
		          "store %s: %s is fenced by a claim with epoch %llu", news->store, peer,
		          epoch);
		break;
	case STORE_QUOTA_EXCEEDED:
		log_event(LOG_LEVEL_WARNING, "share-exceeded", &about,
		          "store %s: %s took more memory than was reserved for the store, and is "
		          "cut off; the memory is given back, and the image stays",
		          news->store, peer);
		break;
	case STORE_SESSION_ENDED:
		log_event(LOG_LEVEL_INFO, "session-over", &about,
		          "store %s: the session of %s, epoch %llu, is over", news->store, peer,
		          epoch);
		break;
	case STORE_RESYNC_BEGUN:
		log_event(LOG_LEVEL_INFO, "resync-begun", &about,
		          "store %s: %s repairs the image in place", news->store, peer);
		break;
	case STORE_REBUILD_BEGUN:
		log_event(LOG_LEVEL_INFO, "rebuild-begun", &about,
		          "store %s: %s rebuilds the image", news->store, peer);
		break;
	case STORE_CONSISTENT:
		log_event(LOG_LEVEL_INFO, "consistent", &about,
		          "store %s: the image is whole, at transaction %llu", news->store, seq);
		break;
	case STORE_DAMAGED:
		log_event(LOG_LEVEL_ERROR, "damaged", &about,
		          "store %s: the image is damaged and refused", news->store);
		break;
	case STORE_DROPPED:
		log_event(LOG_LEVEL_INFO, "dropped", &about, "store %s: dropped", news->store);
		break;
	case STORE_HANDOVER_REQUESTED:
		log_event(LOG_LEVEL_INFO, "handover", &about,
		          "store %s: %s, epoch %llu, is asked to hand it over", news->store, peer,
		          epoch);
		break;
	case STORE_HANDOVER_WITHDRAWN:
		log_event(LOG_LEVEL_INFO, "handover-over", &about,
		          "store %s: the handover is taken back", news->store);
		break;
	case STORE_FILES_MISSING:
	case STORE_FILES_RESTORED:
		log_files_event(news, &about);
		break;
	case STORE_EVENTS:
		break;
	}
}

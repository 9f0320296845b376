/*
 * commands.c - the table of the verbs, with what --help prints about each.
 */
#include "command.h"

#include <stddef.h>

const struct ps_verb ps_verbs[] = {
	{ "create", PS_CREATE, "sm", "sM",
	  "STORE LIST [--acks W] [--log-size SIZE] [--level 0] [--json]", "makes a store",
	  "Makes an empty store on all of the mirrors, or on none. All must answer, and none may\n"
	  "have a store of that name. An application makes its segments in it. A warning names\n"
	  "mirrors that share a host, as perseas status tells, and so would be lost together.\n",
	  NULL, ps_verb_create },
	{ "status", PS_STATUS, "sm", "sM",
	  "STORE LIST [--json]\n  perseas status --all LIST [--json]",
	  "shows a store: its owner, its state on each mirror, its segments",
	  "First says whether its owner can commit, whether it can be opened, and the smallest\n"
	  "loss that would change that: of a mirror, or of all its mirrors on one machine or\n"
	  "host, in one rack or zone, as the daemons' labels and the ids of their hosts' boots\n"
	  "tell. Then, for each mirror of the list and each other one that the roster has:\n"
	  "whether it answers, the state of its image (consistent, joining, creating), the epoch\n"
	  "that it promised, its commit slot (epoch:transaction), how many transactions it is\n"
	  "behind the newest seen (lag), the memory that its image takes, and a live owner; then\n"
	  "the store's roster and its segments. It names those who wait to own the store, and\n"
	  "how much of its memory their copies have.\n"
	  "\n"
	  "With --all, LIST names daemons, up to 1024, and each store that they have is a line,\n"
	  "those with problems first: its owner, how many of its mirrors are up to date, how many\n"
	  "any of them can be lost before a commit or an open fails, of how many its roster\n"
	  "promises, how many transactions the last mirror is behind (or how far it is copied),\n"
	  "and what is wrong. Each daemon is asked once; those that rosters name and LIST does\n"
	  "not are asked, too. The status is 1 if a store cannot be used or bears fewer losses\n"
	  "than promised, 3 if only a daemon does not answer, 4 if none does.\n"
	  "\n"
	  "It only reads: it fences nobody, and may be run beside a live owner.\n"
	  "\n"
	  "Examples:\n"
	  "  perseas status bank m1:7170,m2:7170,m3:7170\n"
	  "  perseas status --all @fleet\n",
	  NULL, ps_verb_status },
	{ "ls", PS_LS, "m", "M", "LIST [--json]",
	  "lists the stores on each mirror, its memory and version",
	  "With them stand the labels of the mirror's host, rack and zone, which it tells with\n"
	  "its stores. It only reads: it fences nobody.\n",
	  NULL, ps_verb_ls },
	{ "top", PS_TOP, "m", "M", "LIST [--interval SECONDS] [--once] [--json]",
	  "shows what runs: transactions a second, latencies, how far mirrors are behind",
	  "Asks the mirrors again and again, and those that rosters name, too. A line for each\n"
	  "store, those with problems first: its newest transaction, transactions a second, how\n"
	  "long half of the commits took at most, and all but one of a hundred (as their owner\n"
	  "timed them, in the interval), how many of its mirrors are up to date, how far the\n"
	  "last one is behind or has been copied, its owner, and what is wrong, as with perseas\n"
	  "status --all. A mirror that does not answer is named, and asked again.\n"
	  "\n"
	  "On a terminal it redraws in place until q, SIGINT or SIGTERM; the arrows, j and k,\n"
	  "and the keys for pages and for the ends scroll. Elsewhere it prints a table, or with\n"
	  "--json an object on a line of its own, for each interval. It only reads: it fences\n"
	  "nobody. For the stores of many daemons: watch perseas status --all LIST\n"
	  "\n"
	  "Examples:\n"
	  "  perseas top m1:7170,m2:7170,m3:7170\n"
	  "  perseas top m1:7170 --interval 10 --json >>/var/log/perseas-top\n",
	  NULL, ps_verb_top },
	{ "recover", PS_RECOVER, "sm", "sM",
	  "STORE LIST [--takeover]\n"
	  "                        [--to DIR | --onto LIST [--as NAME] [--acks W]]\n"
	  "                        [--accept-state EPOCH:SEQ] [--json]",
	  "opens a store, mends its mirrors, or saves its contents elsewhere",
	  "Claims the store, chooses its newest state, and says what it found on each mirror and\n"
	  "why it chose as it did. A store with a live owner is refused, and nobody is fenced,\n"
	  "but for --takeover. Then:\n"
	  "\n"
	  "  without --to and --onto, makes that state the one of all mirrors that can be\n"
	  "  reached, and leaves the store without an owner. It waits until mirrors that lag\n"
	  "  are up to date; SIGINT ends the wait, and leaves them behind;\n"
	  "  --to reads the contents out into files, and changes nothing on the mirrors;\n"
	  "  --onto makes the store again on other mirrors, and compares what they then hold.\n"
	  "  It needs memory for the whole store and its largest segment once more. The old\n"
	  "  store stays as it is.\n"
	  "\n"
	  "An image that promised an epoch which no claim can follow was spoilt, by a claim that\n"
	  "an older version granted. Where enough other mirrors can be claimed, drop this image\n"
	  "(perseas drop STORE MIRROR): it is made anew. Where they cannot, save the store with\n"
	  "perseas snapshot, which needs no claim, from the mirror that perseas status shows\n"
	  "to hold the newest state; drop all its images, and make it with perseas restore.\n",
	  ps_verb_recover_check, ps_verb_recover },
	{ "verify", PS_VERIFY, "sm", "sM",
	  "STORE LIST\n"
	  "                       [--repeat SECONDS | --repair [--wait SECONDS]] [--json]",
	  "compares the segments on the mirrors, byte for byte, also while the store runs",
	  "Prints a line for each mirror and segment that differs, with the first byte that\n"
	  "does. It only reads. Where nothing is committed meanwhile, the mirrors sum their\n"
	  "pieces of 2 MiB; else the pieces are read, with the log beside them, and every\n"
	  "mirror's piece is undone to the same transaction before it is compared: so what\n"
	  "is under way, or was left unfinished by a crash, is no difference. A mirror that\n"
	  "is further behind than the log reaches, or whose history is another, is not\n"
	  "compared, and the exit status is 3.\n"
	  "\n"
	  "With --repair, the live owner sends mirrors what is wrong there. It needs the right\n"
	  "admin, and may be repeated at any time.\n"
	  "\n"
	  "Examples:\n"
	  "  perseas verify bank --mirrors m1:7170,m2:7170,m3:7170\n"
	  "  perseas verify bank --mirrors m1:7170,m2:7170,m3:7170 --repair\n"
	  "  perseas verify bank --mirrors m1:7170,m2:7170,m3:7170 --repeat 3600\n",
	  ps_verb_verify_check, ps_verb_verify },
	{ "snapshot", PS_SNAPSHOT, "s", "M",
	  "STORE --from MIRROR --to FILE [--json]\n  perseas snapshot --check FILE [--json]",
	  "copies a store into a file, also while it runs",
	  "Reads the store from one mirror, as it was at one transaction, without its\n"
	  "owner's help and without fencing it. The file holds all segments and where they\n"
	  "lie, with checksums; it gets its name when it is complete, and never replaces\n"
	  "another. It takes memory for the whole store here. Where the log is overwritten\n"
	  "faster than it can be followed, it begins again, 16 times at most, and then says\n"
	  "what to do (status 1).\n"
	  "\n"
	  "Examples:\n"
	  "  perseas snapshot bank --from m2:7170 --to /backup/bank.perseas\n"
	  "  perseas snapshot --check /backup/bank.perseas\n",
	  ps_verb_snapshot_check, ps_verb_snapshot },
	{ "restore", PS_RESTORE, "fsm", "fsM", "FILE STORE LIST [--acks W] [--json]",
	  "makes a new store from a snapshot",
	  "The whole file is checked first. Then the store is made on all mirrors of the\n"
	  "list, which must all answer, and none of which may have a store of that name;\n"
	  "its segments lie at the addresses that they had, so pointers in them stay good.\n"
	  "They are compared on all mirrors, and then come to exist together. What fails in\n"
	  "between is deleted again. It counts its transactions anew. If the command is\n"
	  "killed, nobody can open the store; the same command deletes it and begins anew.\n"
	  "\n"
	  "Example:\n"
	  "  perseas restore /backup/bank.perseas bank2 m1:7170,m2:7170,m3:7170\n",
	  NULL, ps_verb_restore },
	{ "history", PS_HISTORY, "s", "sM",
	  "STORE --from MIRROR [--last N] [--seq S] [--segment NAME\n"
	  "                        [--offset BYTES] [--length BYTES]] [--bytes] [--json]",
	  "shows which transaction changed which bytes, and when",
	  "Walks back through a mirror's log, from the newest transaction on, as far as it\n"
	  "has not been overwritten, and says why it ends there. It only reads, also from a\n"
	  "store that runs. Times are those of the owner's clock, in UTC.\n"
	  "\n"
	  "Examples:\n"
	  "  perseas history bank --from m1:7170 --last 5\n"
	  "  perseas history bank --from m1:7170 --segment accounts --offset 4096 --bytes\n",
	  ps_verb_history_check, ps_verb_history },
	{ "heap", PS_HEAP, "sn", "sM", "STORE [HEAP] --from MIRROR [--json]",
	  "shows what a heap is used for, by size and type, also while the store runs",
	  "Reads the metadata of the heap, or of all heaps, from one mirror, as it was at one\n"
	  "transaction, without the owner's help: 0.8 % of a heap's size, and none of its\n"
	  "objects. It takes as much memory here. A line for each size and type of objects says\n"
	  "how many there are, in how many chunks of 64 KiB, and how many bytes of these are\n"
	  "gaps: room for objects of the same size and type only. Types are the application's\n"
	  "numbers. Free chunks are for any object; those that lie in a row are the largest\n"
	  "object that the heap has room for without growing. The status is 1 if there is no\n"
	  "such heap, or if its metadata contradicts itself.\n"
	  "\n"
	  "Examples:\n"
	  "  perseas heap bank --from m2:7170\n"
	  "  perseas heap bank accounts --from m2:7170 --json\n",
	  NULL, ps_verb_heap },
	{ "roster", PS_ROSTER, "csmaa", "sM",
	  "STORE LIST [--json]\n"
	  "  perseas roster  add STORE LIST NEW [--acks W] [--dry-run] [--wait SECONDS]\n"
	  "  perseas roster  remove STORE LIST OLD [--gone] [--acks W] [--dry-run]\n"
	  "                  [--wait SECONDS]\n"
	  "  perseas roster  replace STORE LIST OLD NEW [--gone] [--acks W] [--dry-run]\n"
	  "                  [--wait SECONDS]\n"
	  "  perseas roster  raise STORE LIST [--wait SECONDS]\n"
	  "  perseas roster  cancel STORE LIST [--wait SECONDS]",
	  "shows which mirrors a store has, and changes them",
	  "LIST is that of the store's mirrors as they are; OLD is the address of one, NEW\n"
	  "how owners are to reach the one that comes. If two exchanged their addresses, OLD\n"
	  "means the one that is there now, and OLD given as NEW, too, records it. Where the\n"
	  "store has a live owner, that owner is asked and makes the change while it goes on;\n"
	  "the command follows it. Where it has none, the command opens the store, makes the\n"
	  "change, and lets go of it. A mirror that leaves keeps its image, which counts for\n"
	  "nothing: perseas drop deletes it. Where W is a majority of the mirrors it is one\n"
	  "afterwards, too; any other W stays where it fits; --acks says otherwise. raise gives\n"
	  "the store level 1, whose images only those can make who know its key; all of its\n"
	  "mirrors must answer, and must be of this version. The version before does not open the\n"
	  "store any more. cancel takes back a change that cannot be finished, as long as it is\n"
	  "not decided; also one that an owner left unfinished. After add and replace a warning\n"
	  "names mirrors that share a host. If the change was made before, the command says\n"
	  "so, and the status is 0. It is 1 if the roster does not fit the change.\n"
	  "\n"
	  "Examples:\n"
	  "  perseas roster bank m1:7170,m2:7170,m3:7170\n"
	  "  perseas roster replace bank m1:7170,m2:7170,m3:7170 m3:7170 m4:7170\n"
	  "  perseas roster add bank m1:7170,m2:7170 m3:7170 --dry-run\n",
	  ps_verb_roster_check, ps_verb_roster },
	{ "drop", PS_DROP, "sm", "sm", "STORE LIST [--yes] [--json]",
	  "deletes the images of a store from mirrors",
	  "Without --yes it says what it would delete, and the status is 1. Where a mirror's\n"
	  "image has a live owner, nothing is deleted. Mirrors that are not in the list are\n"
	  "not touched: to delete a store, name all of them. A store whose restore was not\n"
	  "finished is deleted without --yes, from all of its mirrors, if each answers.\n"
	  "\n"
	  "Examples:\n"
	  "  perseas drop bank m3:7170 --yes\n"
	  "  perseas drop bank m1:7170,m2:7170,m3:7170 --yes\n",
	  NULL, ps_verb_drop },
	{ "spill", PS_SPILL, "m", "m", "MIRROR [--wait SECONDS] [--json]",
	  "has a mirror write its images to disk, and end",
	  "For a host that is about to lose its power: the mirror cuts off all owners,\n"
	  "writes every image to its spill directory (perseasd --spill-dir), and ends. When\n"
	  "it is started again it loads them, and removes them from the disk.\n"
	  "\n"
	  "Example:\n"
	  "  perseas spill 127.0.0.1:7170 --wait 120\n",
	  NULL, ps_verb_spill },
	{ "bench", PS_BENCH, "m", "M",
	  "[LIST] [--acks W] [--sizes LIST] [--seconds S] [--threads N] [--json]",
	  "measures commits of several sizes on these mirrors",
	  "Makes a store of its own, with a name that nobody has, runs transactions of each size\n"
	  "in it, and deletes it again, also on SIGINT and SIGTERM; other stores are not touched.\n"
	  "To measure each mirror by itself, give one at a time. Other work on these hosts, and\n"
	  "owners of other stores, are measured with it. Latencies are in microseconds.\n"
	  "\n"
	  "Examples:\n"
	  "  perseas bench m1:7170,m2:7170,m3:7170\n"
	  "  perseas bench rdma://m1:7170,rdma://m2:7170 --sizes 64 --threads 4 --json\n",
	  NULL, ps_verb_bench },
	{ "run", PS_RUN, "sm", "sM",
	  "STORE LIST [--order N] [--name NAME] [--restarts N]\n"
	  "                       [--stop-after SECONDS] [--patience SECONDS]\n"
	  "                       [--warm [--warm-rate SIZE]]\n"
	  "                       -- COMMAND [ARGUMENT ...]",
	  "has a program own a store wherever no other owner lives: failover",
	  "Waits as a standby while the store has an owner; the mirrors tell at once when it has\n"
	  "none any more. Then it starts COMMAND, which opens the store without a takeover: of\n"
	  "several standbys the mirrors let one in, and COMMAND ends with an error elsewhere,\n"
	  "which counts as no failure. COMMAND finds PERSEAS_STORE and PERSEAS_MIRRORS in its\n"
	  "environment, and the certificates that were given here. run never claims the store\n"
	  "itself, so a wrong decision does no harm.\n"
	  "\n"
	  "PERSEAS_INHERITED tells COMMAND's library what run knows: where the mirrors answered,\n"
	  "for example. With --warm COMMAND inherits a descriptor as well, with a copy of the\n"
	  "store's memory. What cannot be shown to be right is read from mirrors, and COMMAND's\n"
	  "perseas_report says how much was there.\n"
	  "\n"
	  "COMMAND is sent SIGTERM, and SIGKILL later, when another owner has fenced it, or when\n"
	  "perseas move has asked for another standby. run is a standby again afterwards, and\n"
	  "also if COMMAND fails after another owner had the store. A COMMAND that ends with 0\n"
	  "by itself is done, and ends run. When it fails otherwise, it is started again, after\n"
	  "0.1 s at first and 10 s at most. SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1 and SIGUSR2\n"
	  "are passed on to COMMAND; the first three end run, when COMMAND has ended.\n"
	  "systemd is told READY=1 by a standby, too (Type=notify).\n"
	  "\n"
	  "The status is that of COMMAND, 128 and the signal that ended it, 126 if it cannot be\n"
	  "started, 127 if it is not found; 0 for a standby that is told to end; 123 if the\n"
	  "mirrors have no such store, 124 if too few answer at the start, 125 if the system\n"
	  "refuses something. Of those below only 2 is run's own.\n"
	  "\n"
	  "Examples:\n"
	  "  perseas run bank m1:7170,m2:7170,m3:7170 -- /usr/bin/bank --port 80\n"
	  "  perseas run bank m1:7170,m2:7170,m3:7170 --order 1 -- /usr/bin/bank --port 80\n",
	  ps_verb_run_check, ps_verb_run },
	{ "move", PS_MOVE, "smhhhh", "sM", "STORE LIST HOST ... [--within SECONDS] [--json]",
	  "hands a running store over to a standby: a planned failover",
	  "HOST is the name of a standby of perseas run (its --name, or its host's name); of\n"
	  "several, the first that is there, and known to as many mirrors as an open needs. The\n"
	  "owner is asked to let go: a perseas run ends its COMMAND with SIGTERM, and waits on as\n"
	  "the last in order; any other program is told by PERSEAS_EVENT_HANDOVER. As soon as the\n"
	  "owner has closed the store the named standby starts COMMAND, and the others leave the\n"
	  "store to it for 5 s.\n"
	  "\n"
	  "It says how long the owner took to close the store, and the pause: from then until\n"
	  "the next owner had it open, by the mirrors' clocks, the longest of all mirrors. What\n"
	  "was acknowledged is never lost, also where the owner or the standby dies meanwhile.\n"
	  "Nothing is asked of the owner where no such standby is there.\n"
	  "\n"
	  "The status is 0 when that standby has the store, or had it before; 1 when nothing was\n"
	  "changed: the store has no owner, no such standby is there, or it is handed over\n"
	  "already; 3 when the store has an owner, but the last one did not close it, or another\n"
	  "standby took it; 4 when it was not handed over in time: then the request is taken\n"
	  "back, and a COMMAND that was told to end still ends. Where a mirror could not be told\n"
	  "that, it is named: it may still ask the owner, until the time is over.\n"
	  "\n"
	  "Examples:\n"
	  "  perseas move bank m1:7170,m2:7170,m3:7170 node2\n"
	  "  perseas move bank --mirrors m1:7170,m2:7170,m3:7170 node2 node3\n",
	  ps_verb_move_check, ps_verb_move },
	{ "place", PS_PLACE, "m", "M", "LIST [--copies N] [--size BYTES] [--apart WHERE] [--json]",
	  "proposes mirrors for a new store, of which no two fail together",
	  "LIST names daemons, up to 1024. Each is asked where it runs (perseasd --label, and the\n"
	  "id of its host's boot, which daemons on one machine share) and what memory it has\n"
	  "left. Printed is a list of mirrors, as other commands take it: on different machines,\n"
	  "in different zones, racks and hosts, those first that would be the least full, then\n"
	  "those with the fewest stores, then those with the least load. Nothing is reserved,\n"
	  "and nothing is changed.\n"
	  "\n"
	  "The status is 1, and nothing is proposed, if there are too few zones, racks or hosts\n"
	  "with room: two mirrors are never put where they fail together. It is 3 if a daemon of\n"
	  "LIST does not answer, and 4 if one of them is so old that it does not know of labels.\n"
	  "\n"
	  "Examples:\n"
	  "  perseas place m1:7170,m2:7170,m3:7170,m4:7170,m5:7170\n"
	  "  perseas create bank $(perseas place $DAEMONS --size 4G)\n",
	  NULL, ps_verb_place },
	{ "drain", PS_DRAIN, "am", "m",
	  "MIRROR LIST [--gone] [--apart WHERE] [--dry-run] [--wait SECONDS]\n"
	  "                       [--json]",
	  "moves all images of a mirror elsewhere, while their owners work",
	  "For each store that MIRROR has an image of, the daemon of LIST is chosen that perseas\n"
	  "place would choose, and takes the place of MIRROR in the store's roster, as by perseas\n"
	  "roster replace: by the store's owner while it goes on, or here where it has none. No\n"
	  "mirror leaves a roster before another one holds everything. The image on MIRROR is\n"
	  "deleted when every mirror of the new roster is up to date. LIST may name MIRROR, which\n"
	  "gets nothing. If the daemon that was chosen dies meanwhile, another one is chosen; if\n"
	  "it took its place already, not before it was silent for 3 s.\n"
	  "\n"
	  "With --gone MIRROR has died for good. Then each store of the daemons of LIST whose\n"
	  "roster names it gets another daemon in its place, which is filled by what is left. It\n"
	  "is refused while MIRROR answers, and a store waits while its owner calls it live.\n"
	  "Where MIRROR ran nobody can tell then: without --apart, the widest domain with room\n"
	  "is taken.\n"
	  "\n"
	  "A new mirror is as far from the others of its store as --apart says. Without it, in\n"
	  "the widest domain (zone, rack, host) that has room, and never closer than the store's\n"
	  "mirrors are now. Two are never put on one host.\n"
	  "\n"
	  "Nothing is kept but what the mirrors keep: when drain was killed, run it again, and\n"
	  "it goes on. Nothing keeps new images from coming to MIRROR: take it out of the lists\n"
	  "that stores are made with, or the right create from its access rules.\n"
	  "\n"
	  "The status is 0 when MIRROR has no image any more, or could have none (--dry-run), or,\n"
	  "with --gone, no place in a roster; 1 when an image or a place stays, and why was said,\n"
	  "or when a daemon of LIST has a store whose roster names MIRROR, which lost its image\n"
	  "or has a damaged one; 3 when another run may go on: a signal, --wait, or images that\n"
	  "came meanwhile; 4 when MIRROR does not answer, without --gone.\n"
	  "\n"
	  "Examples:\n"
	  "  perseas drain m3:7170 m1:7170,m2:7170,m4:7170,m5:7170 --dry-run\n"
	  "  perseas drain m3:7170 @fleet --apart rack\n"
	  "  perseas drain m3:7170 @fleet --gone\n",
	  ps_verb_drain_check, ps_verb_drain },
	{ "doctor", PS_DOCTOR, "m", "", "[LIST] [--memory-dir DIR] [--json]",
	  "checks this host, and mirrors: what is missing, and what to do about it",
	  "Checks what the guides leave open, as it depends on this host: what becomes of an\n"
	  "owner that dumps core, whether owners can recover on demand and learn which pages they\n"
	  "wrote, at which addresses RDMA reaches this host, whether logind would remove the\n"
	  "images, and when TLS files expire. The mirrors of LIST are asked for their versions,\n"
	  "stores that are in danger there, and what expires. Each line is ok, warning, fail or\n"
	  "skipped, with what was found, and below it what to do. It changes nothing. The status\n"
	  "is 1 when a check fails.\n"
	  "\n"
	  "Examples:\n"
	  "  perseas doctor\n"
	  "  perseas doctor m1:7170,m2:7170,m3:7170 --json\n",
	  ps_verb_doctor_check, ps_verb_doctor },
	{ "help", PS_HELP, "t", "", "[COMMAND | exit-codes]",
	  "says how a command is used, or what an exit status means",
	  "Without a word it says what there is.\n", NULL, ps_verb_help },
	{ "completion", PS_COMPLETION, "S", "", "bash | zsh", NULL,
	  "Prints what the shell needs to complete command lines of perseas. make install\n"
	  "puts it where the shells look for it; by hand: . <(perseas completion bash)\n",
	  NULL, ps_verb_completion },
	{ NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL },
};
